import type { Context } from '#src/context.ts'
import { assetUrl } from '#src/pages/assets.ts'
import { sheetsOf } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { type Html, markup } from './markup.ts'

export const HOME = '/dev/'

const links: [href: string, title: string][] = [
  [HOME, 'Overview'],
  ['/dev/mailbox', 'Mailbox'],
  ['/dev/log', 'Requests'],
  ['/dev/webhooks', 'Webhooks'],
  ['/dev/tools', 'Clock and faults'],
  ['/guide', 'Guide'],
]

const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/**
 * Headers of each page below /dev/. The referrer policy is `same-origin`, because with `no-referrer` forms
 * would send `Origin: null`.
 */
const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'content-security-policy': POLICY,
}

/** Content of a page of development mode. */
export interface DevPage {
  title: string
  body: Html
  /** Path of the page. The navigation marks it as the current one. */
  current?: string | undefined
  status?: number
}

/** Returns a page of development mode with its navigation. */
export const devPage = (context: Context, { title, body, current, status = 200 }: DevPage): Response => {
  const sheets = [...sheetsOf(defaultBrand(context)), assetUrl('guide.css') ?? '', assetUrl('dev.css') ?? '']
  const html = markup`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${title} – Gatehouse development</title>
  <link rel="icon" type="image/svg+xml" href="${assetUrl('gate.svg')}">
  ${sheets.map(url => markup`<link rel="stylesheet" href="${url}">`)}
</head>
<body class="guide dev">
  <header>
    <a href="${HOME}">Gatehouse development</a>
    <nav aria-label="Development">${links.map(
      ([href, name]) =>
        markup`<a href="${href}"${href === current ? markup` aria-current="page"` : ''}>${name}</a>`,
    )}</nav>
  </header>
  <main><h1>${title}</h1>${body}</main>
</body>
</html>
`
  return new Response(String(html), { status, headers: pageHeaders })
}

/** Returns a table, or the text `empty` when there are no rows. */
export const table = (heads: string[], rows: Html[][], empty: string): Html =>
  rows.length === 0
    ? markup`<p class="muted">${empty}</p>`
    : markup`<table><thead><tr>${heads.map(head => markup`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(
        cells =>
          markup`<tr>${cells.map((cell, i) => markup`<td${i > 0 ? markup` data-label="${heads[i]}"` : ''}>${cell}</td>`)}</tr>`,
      )}</tbody></table>`

/** Renders text as code. */
export const code = (text: string): Html => markup`<code>${text}</code>`

/** Returns a value as indented JSON in a box that the keyboard can scroll. */
export const jsonBox = (value: unknown): Html =>
  markup`<pre tabindex="0"><code>${JSON.stringify(value, null, 2)}</code></pre>`
