import { expect, test } from 'bun:test'
import { Glob } from 'bun'

test('the result of a macro that is named twice is frozen, so that the executable contains it once', async () => {
  const named: string[] = []
  for await (const path of new Glob('src/**/*.ts').scan()) {
    const text = (await Bun.file(path).text()).replace(/^\s*(\/\/|\/?\*).*$/gm, '')
    const [, ...macros] =
      /^import \{ (\w+)(?:, (\w+))? \} from .+ with \{ type: 'macro' \}$/m.exec(text) ?? []
    for (const macro of macros.filter(Boolean)) {
      const taken = new RegExp(`^(?:export )?const (\\w+)[^=\\n]* = ${macro}\\(`, 'm').exec(text)
      const uses = text.match(new RegExp(`\\b${taken?.[1]}\\b`, 'g')) ?? []
      const isExported = taken?.[0].startsWith('export')
      if (taken && uses.length > (isExported ? 1 : 2)) named.push(`${path}: ${taken[1]}`)
    }
  }
  expect(named).toEqual([])
})
