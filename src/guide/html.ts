import { guideSections } from './pages.ts'
import { type Block, type GuidePage, type Inline, plain } from './tree.ts'

const text = Bun.escapeHTML

const inline = (part: Inline): string => {
  if (part.type === 'text') return text(part.text)
  if (part.type === 'code') return `<code>${text(part.text)}</code>`
  if (part.type === 'strong') return `<strong>${inlines(part.text)}</strong>`
  const { to } = part
  // A file of the repository gets no link, because the executable does not contain the file.
  if ('file' in to) {
    const path = `<code>${text(to.file)}</code>`
    return plain(part.text) === to.file ? path : `${inlines(part.text)} (${path})`
  }
  const href = 'url' in to ? to.url : `/guide/${to.subject}${to.id && `#${to.id}`}`
  return `<a href="${text(href)}">${inlines(part.text)}</a>`
}
const inlines = (parts: Inline[]): string => parts.map(inline).join('')

/**
 * Returns the attribute with the name of a column. When a narrow page stacks the cells, the stylesheet shows
 * this name in each cell. The first and the last column get no attribute.
 */
const labelOf = (head: Inline[][], i: number): string =>
  i > 0 && i < head.length - 1 ? ` data-label="${text(plain(head[i] ?? []))}"` : ''

const table = (head: Inline[][], rows: Inline[][][]): string => {
  const heads = head.map(cell => `<th scope="col">${inlines(cell)}</th>`)
  const bodies = rows.map(row =>
    row.map((cell, i) => `<td${labelOf(head, i)}>${inlines(cell)}</td>`).join(''),
  )
  return `<table><thead><tr>${heads.join('')}</tr></thead><tbody>${bodies.map(row => `<tr>${row}</tr>`).join('')}</tbody></table>`
}

const block = (part: Block): string => {
  if (part.type === 'heading')
    return `<h${part.depth} id="${text(part.id)}">${inlines(part.text)}</h${part.depth}>`
  if (part.type === 'paragraph') return `<p>${inlines(part.text)}</p>`
  // A wide block scrolls. `tabindex` makes it scrollable with the keyboard:
  // https://www.w3.org/WAI/standards-guidelines/act/rules/0ssw9k/
  if (part.type === 'code') return `<pre tabindex="0"><code>${text(part.text)}</code></pre>`
  if (part.type === 'table') return table(part.head, part.rows)
  const tag = part.ordered ? 'ol' : 'ul'
  return `<${tag}>${part.items.map(item => `<li>${inlines(item)}</li>`).join('')}</${tag}>`
}

const contents = (withAbout: boolean, current?: string): string =>
  guideSections
    .map(
      ({ title, pages }) =>
        `<h2>${text(title)}</h2><ul>${pages
          .map(
            ({ subject, title: name, about }) =>
              `<li><a href="/guide/${subject}"${subject === current ? ' aria-current="page"' : ''}>${text(name)}</a>${withAbout ? `<span>${text(about)}</span>` : ''}</li>`,
          )
          .join('')}</ul>`,
    )
    .join('')

/**
 * Returns the document of a page, or of the table of contents when `page` is undefined. `sheets` are the URLs
 * of the stylesheets. `home` is the URL of the pages of development mode.
 */
export const guideDocument = (
  page: GuidePage | undefined,
  { sheets, icon, home }: { sheets: string[]; icon: string; home: string },
): string => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${text(page ? `${page.title} – Gatehouse guide` : 'Gatehouse guide')}</title>
  <link rel="icon" type="image/svg+xml" href="${icon}">
  ${sheets.map(url => `<link rel="stylesheet" href="${url}">`).join('\n  ')}
</head>
<body class="guide">
  <header><a href="/guide">Gatehouse guide</a>${page ? '<a href="#contents">Contents</a>' : ''}<a href="${text(home)}">Development</a></header>
  <div class="sheet">
    <main${page ? '' : ' class="subjects"'}>${page ? page.blocks.map(block).join('\n') : `<h1>Guide</h1>${contents(true)}`}</main>
    ${page ? `<nav id="contents" aria-label="Guide">${contents(false, page.subject)}</nav>` : ''}
  </div>
</body>
</html>
`
