import { Glob } from 'bun'

/** Rows of one table of the specification, each with the test that pins it: `file: title`, or how the title begins. */
export type Table = readonly (readonly [row: string, pin: string])[]
export type Tables = Readonly<Record<string, Table>>

/** These rows are pinned by this test. */
export const by = (pin: string, ...rows: string[]): Table => rows.map(row => [row, pin] as const)

/** No test pins it: only a row that `notBuiltYet` names may say so. */
export const NOTHING = ''

const folder = new URL('../', import.meta.url).pathname
const files = [...new Glob('**/*.ts').scanSync(folder)]
  .filter(file => !file.startsWith('conformance/'))
  .sort()

/** The texts of the suite by file (`oauth/token`, without `.test.ts`). */
const sources: ReadonlyMap<string, string> = new Map(
  await Promise.all(
    files.map(
      async file => [file.replace(/(\.test)?\.ts$/, ''), await Bun.file(folder + file).text()] as const,
    ),
  ),
)

const call =
  /\b(?:test|describe|testInChromium|rounds)\b[^'"`\n]*(?:\n\s*[^'"`\n]*)?\(\s*(['"`])((?:\\.|(?!\1).)+)\1/gs
const literal = /(['"`])((?:\\.|(?!\1)[^\n])+)\1/g

const unescaped = (text: string): string => text.replace(/\\(.)/g, '$1')

/** What may be a title in a file: every text in it; the tables of cases have theirs as keys and names. */
const titlesOf = (source: string): string[] =>
  [...source.matchAll(call), ...source.matchAll(literal)].map(match => unescaped(match[2] ?? ''))

const titles = new Map([...sources].map(([file, source]) => [file, titlesOf(source)]))

export const isThere = (pin: string): boolean => {
  const colon = pin.indexOf(': ')
  const wanted = pin.slice(colon + 2)
  return (
    wanted.length > 5 && (titles.get(pin.slice(0, colon))?.some(title => title.startsWith(wanted)) ?? false)
  )
}

/** The rows of the checklist that tests name at the beginning of their titles. */
export const namedIds: ReadonlySet<string> = new Set(
  [...titles.values()]
    .flat()
    .flatMap(title => /^(?:[ORSM]-\d\d,? )+/.exec(`${title} `)?.[0].match(/[ORSM]-\d\d/g) ?? []),
)
