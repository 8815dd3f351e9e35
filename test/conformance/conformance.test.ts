import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { Glob } from 'bun'
import { provenIds } from './ledger.ts'
import { idsOf, readRules } from './rules.ts'

const rules = await readRules()

describe('the rules', () => {
  test('have a unique id, a sentence and a source', () => {
    const ids = rules.map(({ id }) => id)
    expect(ids.length).toBeGreaterThan(400)
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([])
    expect(rules.filter(({ sentence }) => !/\.$/.test(sentence)).map(({ id }) => id)).toEqual([])
    expect(rules.filter(({ source }) => source.trim() === '').map(({ id }) => id)).toEqual([])
  })

  test('are each named at the start of a test title', () => {
    expect(idsOf('O-62, TOK-03 only hashes are stored')).toEqual(['O-62', 'TOK-03'])
    expect(idsOf('a title with O-62 in it')).toEqual([])
  })
})

test('the ledger counts passed tests and their groups, never failed or skipped ones', () => {
  const report = `
    <testcase name="O-01 passes" classname="inner &gt; O-02 outer" time="0" />
    <testcase name="O-03 fails" classname=""><failure message="no" /></testcase>
    <testcase name="O-04 is skipped" classname=""><skipped /></testcase>`
  expect([...provenIds([report])]).toEqual(['O-01', 'O-02'])
})

test('each rule id cited in a comment exists', async () => {
  const ids = new Set(rules.map(({ id }) => id))
  const files = [...new Glob('src/**/*.{ts,md}').scanSync()]
  const cited = await Promise.all(
    files.map(async file =>
      ((await Bun.file(file).text()).match(/(?<=[(\s`])[A-Z]{1,3}-\d\d(?=[),.;:\s`])/g) ?? []).map(id => [
        file,
        id,
      ]),
    ),
  )
  expect(cited.flat().filter(([, id = '']) => !ids.has(id))).toEqual([])
})

test('each Markdown file cited in the repository exists', async () => {
  const files = [
    ...new Glob('{src,test,templates,.github,.ci}/**/*.{ts,md,yml}').scanSync({ dot: true }),
    'README.md',
  ]
  const lost = await Promise.all(
    files.map(async file => {
      const text = await Bun.file(file).text()
      const prose = file.endsWith('.ts') ? (text.match(/^\s*(?:\/?\*|\/\/).*$/gm) ?? []).join('\n') : text
      const cited = prose.match(/(?<![\w/:*@.[-])[\w./-]*\w\.md\b/g) ?? []
      return [...new Set(cited)]
        .filter(
          path =>
            ![path, join('src', path), join(dirname(file), path)].some(one => existsSync(normalize(one))),
        )
        .map(path => `${file} -> ${path}`)
    }),
  )
  expect(lost.flat()).toEqual([])
})

/** Returns the paths in backticks, such as `oauth/token.ts`, that begin with one of these folders. */
const pathsIn = (text: string, folders: ReadonlySet<string>): string[] =>
  [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)`/g)]
    .map(([, path = '']) => path)
    .filter(path => folders.has(path.split('/')[0] ?? ''))

test('each path in backticks exists, in documents and in comments', async () => {
  const folders = new Set([...readdirSync('src'), ...readdirSync('test'), 'src', 'test', 'templates'])
  const globs = ['.github/*.md', '{src,test}/**/*.{md,ts,tsx}']
  const files = ['README.md', ...globs.flatMap(glob => [...new Glob(glob).scanSync({ dot: true })])]
  const exists = (path: string) =>
    ['', 'src', 'test'].some(folder =>
      ['', '.ts', '.tsx', '.test.ts'].some(end => existsSync(join(folder, `${path}${end}`))),
    )
  const found = await Promise.all(
    files.map(async file => {
      const text = await Bun.file(file).text()
      const prose = file.endsWith('.md') ? text : (text.match(/^\s*(?:\/?\*|\/\/).*$/gm) ?? []).join('\n')
      return pathsIn(prose, folders).map(path => [file, path] as const)
    }),
  )
  expect(found.flat().length).toBeGreaterThan(200)
  const lost = found.flat().filter(([, path]) => !exists(path))
  expect(lost.map(([file, path]) => `${file} -> ${path}`)).toEqual([])
})
