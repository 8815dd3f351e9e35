/** Tests the form of source files: their length, doc comments and columns. */
import { expect, test } from 'bun:test'
import { Glob } from 'bun'

/** The text of each source file, by the path of the file in src. */
const everySource = new Map(
  await Promise.all(
    [...new Glob('**/*.{ts,tsx}').scanSync('src')]
      .sort()
      .map(async file => [file, await Bun.file(`src/${file}`).text()] as const),
  ),
)

test('a file over 300 lines says in its header that it is long on purpose', () => {
  const headerOf = (text: string) => /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? ''
  const long = [...everySource].filter(
    ([, text]) =>
      text.split('\n').length > 301 &&
      !/Over\s+(?:\* )?300\s+(?:\* )?lines\s+(?:\* )?on\s+(?:\* )?purpose/.test(headerOf(text)),
  )
  expect(long.map(([file]) => file)).toEqual([])
})

test('each exported function has a doc comment', () => {
  const functions =
    /^export (?:async )?(?:function (\w+)|const (\w+)(?::[^=]*?)? = (?:async )?(?:<[^>]*>)?(?:\([^()]*(?:\([^()]*\)[^()]*)*\)(?:: [^=]*?)? =>|\w+ =>))/gm
  const undocumented = [...everySource].flatMap(([file, text]) =>
    [...text.matchAll(functions)]
      .filter(({ index }) => !text.slice(0, index).endsWith('*/\n'))
      .map(match => `${file} ${match[1] ?? match[2]}`),
  )
  expect(undocumented).toEqual([])
})

test('comments have at most 110 columns, except where a link or table is longer', async () => {
  const files = [...new Glob('{src,test,.ci}/**/*.{ts,tsx}').scanSync({ dot: true })].sort()
  const wide = await Promise.all(
    files.map(async file =>
      (await Bun.file(file).text())
        .split('\n')
        .flatMap((line, i) =>
          line.length > 110 && /^\s*(?:\/?\*|\/\/)/.test(line) && !/https?:|^\s*\* \||biome-ignore/.test(line)
            ? [`${file}:${i + 1}`]
            : [],
        ),
    ),
  )
  expect(wide.flat()).toEqual([])
})

test('a test file has at most 400 lines', async () => {
  const texts = [...new Glob('**/*.test.ts').scanSync('test')].map(
    async file => [file, (await Bun.file(`test/${file}`).text()).split('\n').length - 1] as const,
  )
  expect((await Promise.all(texts)).filter(([, lines]) => lines > 400)).toEqual([])
})
