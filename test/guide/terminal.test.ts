import { expect, test } from 'bun:test'
import { guideSections } from '#src/guide/pages.ts'
import { contentsText, pageText } from '#src/guide/terminal.ts'
import type { GuidePage, Inline } from '#src/guide/tree.ts'
import { EXECUTABLE, gatehouse } from '#test/support/executable.ts'

const pages = guideSections.flatMap(section => section.pages)
const style = { width: 80, bold: (text: string) => `<${text}>` }
const words = (text: string): Inline[] => [{ type: 'text', text }]
const page = (...blocks: GuidePage['blocks']): GuidePage => ({ subject: 'x', title: 'X', about: 'x', blocks })

test('a table is aligned, and its widest column wraps', () => {
  const text = pageText(
    page({
      type: 'table',
      head: [words('Name'), words('Meaning')],
      rows: [
        [[{ type: 'code', text: 'a' }], words('one two three four five six seven eight')],
        [words('long-name'), words('nine')],
      ],
    }),
    { ...style, width: 44 },
  )
  expect(text).toBe(
    [
      '<Name       Meaning>',
      'a          one two three four five six seven',
      '           eight',
      'long-name  nine',
    ].join('\n'),
  )
})

test('a table too wide for columns is shown as blocks, with the names of all but the last', () => {
  const text = pageText(
    page({
      type: 'table',
      head: [words('A'), words('B'), words('C')],
      rows: [[words('abcdefghij'), words('klmnopqrst'), words('r s t u v w x y z')]],
    }),
    { ...style, width: 18 },
  )
  expect(text).toBe(['<abcdefghij>', '    B: klmnopqrst', '    r s t u v w x', '    y z'].join('\n'))
})

test('a few overlong rows do not widen the columns of the others', () => {
  const rows = [
    ['a', 'x', 'one two'],
    ['a-very-long-name', 'y', 'three'],
    ['b', 'z', 'four'],
  ]
  const text = pageText(
    page({
      type: 'table',
      head: [words('Name'), words('Default'), words('Meaning')],
      rows: rows.map(row => row.map(words)),
    }),
    { ...style, width: 22 },
  )
  expect(text).toBe(
    [
      '<Name  Default  Meaning>',
      'a     x        one two',
      '<a-very-long-name>',
      '    Default: y',
      '    three',
      'b     z        four',
    ].join('\n'),
  )
})

test('lists have bullets, headings are bold, code is indented, links show their target', () => {
  const link: Inline = { type: 'link', to: { subject: 'keys', id: '' }, text: words('Keys') }
  expect(
    pageText(
      page(
        { type: 'heading', depth: 1, id: 'x', text: words('Title') },
        { type: 'list', ordered: true, items: [words('first item'), [link]] },
        { type: 'list', ordered: false, items: [words('a b c d e f g h i j')] },
        { type: 'code', language: 'sh', text: 'one\n\ntwo' },
      ),
      { ...style, width: 20 },
    ),
  ).toBe('<Title>\n\n1. first item\n2. Keys (guide keys)\n\n- a b c d e f g h i\n  j\n\n    one\n\n    two')
})

test('no line of any page is wider than 80 columns', () => {
  const plain = { width: 80, bold: (text: string) => text }
  const wide = [contentsText(plain), ...pages.map(each => pageText(each, plain))]
    .flatMap(text => text.split('\n'))
    .filter(line => line.length > 80 && line.includes(' ') && !/^\S+ \(https:\S+\)/.test(line))
  expect(wide).toEqual([])
})

test('gatehouse guide lists the subjects, one line each, and prints a page', async () => {
  const list = await gatehouse(['guide'])
  expect([list.code, list.stderr]).toEqual([0, ''])
  const lines = list.stdout.split('\n')
  for (const { subject, about } of pages)
    expect(lines.filter(line => line.startsWith(`${subject} `) && line.endsWith(` ${about}`))).toHaveLength(1)
  for (const { subject, title } of pages) {
    const { code, stdout } = await gatehouse(['guide', subject])
    expect([code, stdout.split('\n')[0]]).toEqual([0, title])
  }
})

test('an unknown subject exits with 2 and the list, and is not repeated', async () => {
  const { code, stdout, stderr } = await gatehouse(['guide', 'nonsense'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toStartWith('gatehouse: guide: no page has this name or contains this word.')
  for (const { subject } of pages) expect(stderr).toContain(`\n${subject} `)
  expect(stderr).not.toContain('nonsense')
})

test('a word lists the lines that contain it, below their page and heading', async () => {
  const { code, stdout } = await gatehouse(['guide', 'OAUTH2-PROXY'])
  expect(code).toBe(0)
  const blocks = stdout.trim().split('\n\n')
  expect(blocks.some(text => text.startsWith('connect: Reverse proxy with oauth2-proxy\n    '))).toBe(true)
  for (const text of blocks) expect(text.toLowerCase()).toContain('oauth2-proxy')
  expect(stdout.split('\n').filter(line => line.length > 80 && line.trim().includes(' '))).toEqual([])
})

test('headings are bold only on a terminal without NO_COLOR', async () => {
  const print = async (env: Record<string, string>): Promise<string> => {
    const command = ['script', '-qec', `${EXECUTABLE} guide exit-codes`, '/dev/null']
    const child = Bun.spawn(command, {
      env: { PATH: process.env.PATH ?? '', TERM: 'xterm', ...env },
      stdin: 'ignore',
    })
    return new Response(child.stdout).text()
  }
  const printed = await print({})
  expect(printed).toStartWith('\u001b[1mExit codes\u001b[0m')
  expect(printed).toContain('\r\n\r\nA failed command prints one line')
  expect(await print({ NO_COLOR: '1' })).toStartWith('Exit codes')
  expect((await gatehouse(['guide', 'exit-codes'])).stdout).toStartWith('Exit codes')
})
