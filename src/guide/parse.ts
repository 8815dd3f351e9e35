import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lexer, type Token, type Tokens } from 'marked'
import { type Block, type GuideSection, type Inline, plain, type Target } from './tree.ts'

const FOLDER = 'templates/guide'

/** Returns the anchor that GitHub gives a heading. */
const anchor = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const target = (href: string, subject: string): Target => {
  if (/^https?:/.test(href)) return { url: href }
  const [path = '', id = ''] = href.split('#')
  if (path === '') return { subject, id }
  const [, page] = /^([a-z-]+)\.md$/.exec(path) ?? []
  return page ? { subject: page, id } : { file: join(FOLDER, path) }
}

/** Stops the build at Markdown that the renderers do not support and would leave out. */
const unknown = (token: Token, subject: string): never => {
  throw new Error(`${FOLDER}/${subject}.md: ${token.type} is not supported: ${token.raw.slice(0, 60)}`)
}

const inlines = (tokens: Token[] | undefined, subject: string): Inline[] =>
  (tokens ?? []).map((token): Inline => {
    if (token.type === 'text' || token.type === 'escape')
      return { type: 'text', text: token.text.replace(/\s+/g, ' ') }
    if (token.type === 'codespan') return { type: 'code', text: token.text }
    if (token.type === 'strong') return { type: 'strong', text: inlines(token.tokens, subject) }
    if (token.type === 'link')
      return { type: 'link', to: target(token.href, subject), text: inlines(token.tokens, subject) }
    return unknown(token, subject)
  })

const item = ({ tokens }: Tokens.ListItem, subject: string): Inline[] =>
  tokens.flatMap(token =>
    token.type === 'text' ? inlines((token as Tokens.Text).tokens, subject) : unknown(token, subject),
  )

const block = (token: Token, subject: string): Block[] => {
  if (token.type === 'space') return []
  if (token.type === 'paragraph') return [{ type: 'paragraph', text: inlines(token.tokens, subject) }]
  if (token.type === 'code') return [{ type: 'code', language: token.lang ?? '', text: token.text }]
  if (token.type === 'heading') {
    const text = inlines(token.tokens, subject)
    return [{ type: 'heading', depth: token.depth, id: anchor(plain(text)), text }]
  }
  if (token.type === 'list') {
    const { ordered, items } = token as Tokens.List
    return [{ type: 'list', ordered, items: items.map(each => item(each, subject)) }]
  }
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    const cells = (row: Tokens.TableCell[]) => row.map(cell => inlines(cell.tokens, subject))
    return [{ type: 'table', head: cells(header), rows: rows.map(cells) }]
  }
  return unknown(token, subject)
}

const read = (subject: string): Block[] =>
  lexer(readFileSync(join(import.meta.dir, '../..', FOLDER, `${subject}.md`), 'utf8')).flatMap(token =>
    block(token, subject),
  )

/**
 * Returns the guide in the order of its table of contents. The table of contents is README.md, in which each
 * section has a heading and a list. An entry of the list is a link to a page, followed by a colon and the
 * text of `about`. This is a Bun macro, so the executable contains the tree and no Markdown parser.
 * https://bun.com/docs/bundler/macros
 */
export const parseGuide = (): GuideSection[] => {
  const sections: GuideSection[] = []
  for (const part of read('README')) {
    if (part.type === 'heading' && part.depth === 2) sections.push({ title: plain(part.text), pages: [] })
    if (part.type !== 'list') continue
    for (const [link, ...about] of part.items) {
      if (link?.type !== 'link' || !('subject' in link.to))
        throw new Error(`${FOLDER}/README.md: each entry must begin with a link to its page.`)
      const { subject } = link.to
      sections.at(-1)?.pages.push({
        subject,
        title: plain(link.text),
        about: plain(about).replace(/^:\s*/, ''),
        blocks: read(subject),
      })
    }
  }
  return sections
}
