import { guideSections } from './pages.ts'
import { type Block, type GuidePage, type Inline, plain } from './tree.ts'

interface Style {
  /** Maximum characters of a line. */
  width: number
  /** Marks text as bold. Returns the text unchanged when the output does not support bold text. */
  bold(text: string): string
}

const GAP = 2
/** Minimum characters of the last column, which contains the explanation. */
const MIN_WIDTH = 32

/**
 * Renders a part of a text. A link is rendered as its text and its target. The target is left out when the
 * text is the target or contains the path of the target file.
 */
const inline = (part: Inline): string => {
  if (typeof part.text === 'string') return part.text
  const text = part.text.map(inline).join('')
  if (part.type !== 'link') return text
  if ('url' in part.to) return text === part.to.url ? text : `${text} (${part.to.url})`
  if ('file' in part.to) return text.includes(part.to.file) ? text : `${text} (${part.to.file})`
  return part.to.subject && text !== part.to.subject ? `${text} (guide ${part.to.subject})` : text
}
const lineOf = (text: Inline[]): string => text.map(inline).join('')

const wrap = (text: string, width: number): string[] => {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line ? `${line} ${word}` : word
  }
  return [...lines, line]
}

const longestWord = (text: string): number => Math.max(...text.split(' ').map(word => word.length))

/**
 * Returns the width of each column. Returns undefined when the table cannot fit. While the table is too wide,
 * the widest column that exceeds its minimum loses a character. The minimum of a column is its longest word.
 * The last column also keeps at least MIN_WIDTH characters, or its full width if that is less.
 */
const columns = (rows: string[][], width: number): number[] | undefined => {
  const across = (measure: (cell: string) => number) =>
    (rows[0] ?? []).map((_, i) => Math.max(...rows.map(row => measure(row[i] ?? ''))))
  const widths = across(cell => cell.length)
  const least = across(longestWord)
  const last = widths.length - 1
  least[last] = Math.max(least[last] ?? 0, Math.min(widths[last] ?? 0, MIN_WIDTH))
  const total = () => widths.reduce((sum, each) => sum + each + GAP, -GAP)
  while (total() > width) {
    const spare = widths.map((each, i) => (each > (least[i] ?? 0) ? each : 0))
    const widest = Math.max(...spare)
    if (widest === 0) return undefined
    widths[spare.indexOf(widest)] = widest - 1
  }
  return widths
}

/**
 * Returns the width in characters that the cells before the last one need: the sum of their longest words.
 */
const demand = (row: string[]): number => row.slice(0, -1).reduce((sum, cell) => sum + longestWord(cell), 0)

const tableRow = (cells: string[], widths: number[]): string[] => {
  const wrapped = cells.map((cell, i) => wrap(cell, widths[i] ?? 0))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, at) =>
    widths
      .map((each, i) => (wrapped[i]?.[at] ?? '').padEnd(each + GAP))
      .join('')
      .trimEnd(),
  )
}

const table = (head: string[], rows: string[][], { width, bold }: Style): string[] => {
  // If not all rows fit into columns, the rows with the longest words are stacked. All rows are stacked when
  // at most half of them fit.
  const fitting = rows.toSorted((a, b) => demand(a) - demand(b))
  const isFit = (count: number) => columns([head, ...fitting.slice(0, count)], width) !== undefined
  let count = rows.length
  while (count > rows.length / 2 && !isFit(count)) count--
  const inColumns = new Set(fitting.slice(0, count))
  const widths = count > rows.length / 2 ? columns([head, ...inColumns], width) : undefined
  // A stacked row has its first cell on a line of its own. Each further cell follows the name of its column,
  // except the last cell, which is shown without a name.
  const stacked = ([first = '', ...rest]: string[]): string[] => [
    bold(first),
    ...rest
      .map((cell, i) => (i < rest.length - 1 ? `${head[i + 1]}: ${cell}` : cell))
      .flatMap(cell => wrap(cell, width - 4).map(line => `    ${line}`)),
  ]
  if (!widths) return rows.flatMap(stacked)
  return [
    ...tableRow(head, widths).map(bold),
    ...rows.flatMap(row => (inColumns.has(row) ? tableRow(row, widths) : stacked(row))),
  ]
}

const block = (part: Block, style: Style): string[] => {
  if (part.type === 'heading') return [style.bold(lineOf(part.text))]
  if (part.type === 'paragraph') return wrap(lineOf(part.text), style.width)
  if (part.type === 'code') return part.text.split('\n').map(line => `    ${line}`.trimEnd())
  if (part.type === 'table')
    return table(
      part.head.map(lineOf),
      part.rows.map(row => row.map(lineOf)),
      style,
    )
  return part.items.flatMap((item, i) => {
    const bullet = part.ordered ? `${i + 1}. ` : '- '
    return wrap(lineOf(item), style.width - bullet.length).map(
      (line, at) => (at === 0 ? bullet : ' '.repeat(bullet.length)) + line,
    )
  })
}

/** Renders a page as text, with an empty line between blocks. */
export const pageText = (page: GuidePage, style: Style): string =>
  page.blocks.map(part => block(part, style).join('\n')).join('\n\n')

/** Renders the table of contents, one subject per line. */
export const contentsText = ({ width, bold }: Style): string => {
  const all = guideSections.flatMap(({ pages }) => pages)
  const longest = Math.max(...all.map(({ subject }) => subject.length))
  return guideSections
    .map(({ title, pages }) =>
      [
        bold(title),
        ...pages.flatMap(({ subject, about }) =>
          tableRow([subject, about], [longest, width - longest - GAP]),
        ),
      ].join('\n'),
    )
    .join('\n\n')
}

/** Splits a block into the texts that a search looks through. A row of a table is one text. */
const textsOf = (part: Block): string[] => {
  if (part.type === 'code') return part.text.split('\n')
  if (part.type === 'list') return part.items.map(plain)
  if (part.type === 'table') return part.rows.map(row => row.map(plain).join('  '))
  return [plain(part.text)]
}

/**
 * Maximum characters on each side of a found word, so that an excerpt takes at most two lines of a terminal.
 */
const AROUND = 60

const excerpt = (text: string, at: number, length: number): string => {
  const from = at <= AROUND ? 0 : text.indexOf(' ', at - AROUND) + 1
  const to = text.length - at - length <= AROUND ? text.length : text.lastIndexOf(' ', at + length + AROUND)
  return `${from > 0 ? '… ' : ''}${text.slice(from, Math.max(to, at + length))}${to < text.length ? ' …' : ''}`
}

/**
 * Lists the places that contain a word, regardless of case, below their page and heading. The result is empty
 * when no page contains the word.
 */
export const linesWith = (word: string, { width, bold }: Style): string =>
  guideSections
    .flatMap(({ pages }) => pages)
    .flatMap(({ subject, blocks }) => {
      let title = ''
      const found = Map.groupBy(
        blocks.flatMap(part => {
          if (part.type === 'heading') title = plain(part.text)
          const under = title
          return textsOf(part).flatMap(text => {
            const at = text.toLowerCase().indexOf(word.toLowerCase())
            return at < 0 ? [] : [{ under, text: excerpt(text, at, word.length) }]
          })
        }),
        ({ under }) => under,
      )
      return [...found].map(([under, places]) =>
        [
          bold(`${subject}: ${under}`),
          ...places.flatMap(({ text }) => wrap(text.trim(), width - 4).map(line => `    ${line}`)),
        ].join('\n'),
      )
    })
    .join('\n\n')
