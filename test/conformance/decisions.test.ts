/** Tests that each file and each function named in src/DECISIONS.md exists. */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'

const codes = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
const rows = readFileSync('src/DECISIONS.md', 'utf8')
  .split('\n')
  .filter(line => line.startsWith('| ') && !/^\| (?:Behaviour|Decision) /.test(line))
  .map(line => {
    const cells = line.slice(2, -2).split(' | ')
    return { line, said: cells.slice(0, -1).join(' '), files: codes(cells.at(-1) ?? '') }
  })
/**
 * Returns the path of a file from the root of the repository. Returns undefined if the file does not exist.
 */
const located = (file: string) => [`src/${file}`, file].find(path => existsSync(path))

test('each row of DECISIONS.md names the files that decide, and they exist', () => {
  expect(rows.length).toBeGreaterThan(700)
  const wrong = rows.filter(({ files }) => files.length === 0 || !files.every(located))
  expect(wrong.map(({ line }) => line)).toEqual([])
})

test('a function or constant that a row of DECISIONS.md names stands in a file of the row', () => {
  const isName = (code: string) =>
    /^(?:[a-z]+(?:[A-Z][a-z0-9]*)+|(?!GATEHOUSE_|NAME_)[A-Z]+(?:_[A-Z]+)+)$/.test(code)
  const texts = (files: string[]) =>
    files
      .map(file => located(file))
      .filter(path => path !== undefined && statSync(path).isFile())
      .map(path => readFileSync(path ?? '', 'utf8'))
      .join('\n')
  const wrong = rows.flatMap(({ line, said, files }) =>
    codes(said).some(code => isName(code) && !texts(files).includes(code)) ? [line] : [],
  )
  expect(wrong).toEqual([])
})
