import type { ComponentChildren } from 'preact'
import type { Block, GuidePage, Inline } from '#src/guide/tree.ts'
import { guideSections } from '../guide-pages.ts'
import { Icon } from '../icons.tsx'
import { Card, Code, Failure, Heading } from '../parts.tsx'
import { words } from '../words.ts'

const text = words.guide

/** Language and direction of the guide, which exists in English only. */
const english = { lang: 'en', dir: 'ltr' } as const

const plain = (parts: Inline[]): string =>
  parts.map(({ text }) => (typeof text === 'string' ? text : plain(text))).join('')

const linkOf = (part: Inline & { type: 'link' }): ComponentChildren => {
  const { to } = part
  if ('file' in to) return <code>{to.file}</code>
  if ('url' in to)
    return (
      <a href={to.url} target="_blank" rel="noopener noreferrer">
        {inlines(part.text)}
      </a>
    )
  return <a href={`/console/guide/${to.subject}${to.id && `#${to.id}`}`}>{inlines(part.text)}</a>
}

const inlines = (parts: Inline[]): ComponentChildren =>
  parts.map((part, index) => {
    if (part.type === 'code') return <code key={index}>{part.text}</code>
    if (part.type === 'strong') return <strong key={index}>{inlines(part.text)}</strong>
    return part.type === 'link' ? linkOf(part) : part.text
  })

const Table = ({ head, rows }: { head: Inline[][]; rows: Inline[][][] }) => (
  <table>
    <thead>
      <tr>
        {head.map((cell, index) => (
          <th key={index} scope="col">
            {inlines(cell)}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((row, index) => (
        <tr key={index}>
          {row.map((cell, column) => (
            <td key={column} data-label={plain(head[column] ?? [])}>
              {inlines(cell)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)

const Part = ({ of: part }: { of: Block }) => {
  if (part.type === 'paragraph') return <p>{inlines(part.text)}</p>
  if (part.type === 'code') return <Code text={part.text} />
  if (part.type === 'table') return <Table head={part.head} rows={part.rows} />
  if (part.type === 'heading') {
    const Title = part.depth === 2 ? 'h2' : 'h3'
    return <Title id={part.id}>{inlines(part.text)}</Title>
  }
  const List = part.ordered ? 'ol' : 'ul'
  return (
    <List>
      {part.items.map((item, index) => (
        <li key={index}>{inlines(item)}</li>
      ))}
    </List>
  )
}

/** Screen that lists the pages of the guide by section. */
export const GuideScreen = () => (
  <>
    <Heading title={words.nav.guide} lead={text.lead} />
    <div class="guide-sections" {...english}>
      {guideSections.map(({ title, pages }) => (
        <Card key={title} title={title} flush>
          <ul class="rows">
            {pages.map(({ subject, title, about }) => (
              <li key={subject}>
                <a class="row link" href={`/console/guide/${subject}`}>
                  <span>
                    <strong>{title}</strong>
                    <span class="hint">{about}</span>
                  </span>
                  <Icon name="right" />
                </a>
              </li>
            ))}
          </ul>
        </Card>
      ))}
    </div>
  </>
)

const Article = ({ page }: { page: GuidePage }) => {
  const [first, ...others] = page.blocks
  const isTitle = first?.type === 'heading' && first.depth === 1
  return (
    <article class="card prose" {...english}>
      {(isTitle ? others : page.blocks).map((part, index) => (
        <Part key={index} of={part} />
      ))}
    </article>
  )
}

/** Screen of one page of the guide. */
export const GuidePageScreen = ({ id }: { id: string }) => {
  const page = guideSections.flatMap(({ pages }) => pages).find(({ subject }) => subject === id)
  const back = { href: '/console/guide', label: words.nav.guide }
  if (!page)
    return (
      <>
        <Heading title={words.nav.guide} back={back} />
        <Card>
          <Failure problem={{ status: 404, error: 'not_found', error_description: '' }} />
        </Card>
      </>
    )
  return (
    <>
      <Heading title={page.title} back={back} />
      <Article page={page} />
    </>
  )
}
