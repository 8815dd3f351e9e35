import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const allowed = [/^\.\.?\//, /^(?:preact|preact\/hooks|@preact\/signals|oauth4webapi)$/]
/** Files of the server that have no imports, or import only types. */
const pure = [
  'lib/ids.ts',
  'lib/device.ts',
  'lib/family-first.ts',
  'lib/quoted.ts',
  'directory/clients/kinds.ts',
  'directory/clients/snippets.ts',
  'protocol/oauth/dynamic-id.ts',
]

const importsOf = (text: string): string[] =>
  [
    ...text
      .replaceAll(/^import type [^']*'[^']*'$/gm, '')
      .matchAll(/^(?:import|export)\b[^'"]*from '([^']+)'(?! with \{ type: 'macro' \})|^import '([^']+)'/gm),
  ].map(([, from, alone]) => from ?? alone ?? '')

test('the browser code of the console imports types of the server, and makes no markup of text', async () => {
  const isPure = (name: string) => pure.some(file => name === `#src/${file}`)
  for (const file of new Glob('**/*.{ts,tsx}').scanSync('src/console/app')) {
    const text = await Bun.file(`src/console/app/${file}`).text()
    const isMacro = /This is a Bun macro/.test(text.replaceAll(/\n \* /g, ' '))
    const others = importsOf(text).filter(name => !isPure(name) && !allowed.some(each => each.test(name)))
    expect([file, isMacro ? [] : others]).toEqual([file, []])
    expect([file, /innerHTML|insertAdjacent|document\.write/i.test(text)]).toEqual([file, false])
  }
  for (const file of pure)
    expect(importsOf(await Bun.file(`src/${file}`).text()).filter(name => /^[#.]/.test(name))).toEqual([])
})
