// Every page in every state and every mail, with sample data.
//   bun test/support/preview.ts                  serves them (`?theme=ember`, `?accent=2b8a3e`, `?locale=de`; `?locale=he`: right to left)
//   bun test/support/preview.ts FOLDER [PATTERN] writes screenshots: phone and desktop, light and dark, languages, themes
import { chromium } from 'playwright-core'
import { accentAsset, accentUrl } from '#src/http/accent.ts'
import { asset } from '#src/http/assets.ts'
import { render } from '#src/http/pages.ts'
import { renderMail } from '#src/mail/render.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import { letterOf, logos, mailKinds, samples } from './page-samples.ts'

const [folder, pattern = ''] = process.argv.slice(2)
const nameOf = (sample: (typeof samples)[number]) => `${sample.page}.${sample.state}`
const mails = Object.keys(mailKinds) as MailKind[]
const names = [...samples.map(nameOf), ...mails.map(kind => `mail.${kind}`)]
const html = (text: string) => new Response(text, { headers: { 'content-type': 'text/html' } })

const server = Bun.serve({
  port: folder ? 0 : 4400,
  fetch: async request => {
    const url = new URL(request.url)
    const sample = samples.find(candidate => url.pathname === `/${nameOf(candidate)}`)
    const kind = mails.find(candidate => url.pathname === `/mail.${candidate}`)
    const logo = logos[url.pathname]
    if (logo) return new Response(logo, { headers: { 'content-type': 'image/svg+xml' } })
    const locale = url.searchParams.get('locale') ?? 'en'
    if (kind) return html(renderMail(letterOf(kind, locale)).html)
    if (!sample) return asset(url.pathname) ?? accentAsset(url.pathname) ?? index()
    const theme = url.searchParams.get('theme') ?? 'default'
    const accent = url.searchParams.get('accent')
    const sheets = accent ? [accentUrl(`#${accent}`)] : []
    const page = render(
      sample.page,
      { ...sample.data, brand: { ...sample.data.brand, theme, sheets } },
      { status: sample.status ?? 200, locale },
    )
    return locale === 'he' ? inHebrewLetters(page) : page
  },
})

/** Words that run from the right where nobody has translated any; names stay as they are. */
const inHebrewLetters = (page: Response): Response => {
  let inside = 0
  return new HTMLRewriter()
    .on('bdi, code', {
      element: element => {
        inside++
        element.onEndTag(() => {
          inside--
        })
      },
    })
    .on('body', {
      text: chunk => {
        const hebrew = chunk.text.replace(/&\w+;|[a-z]/gi, letter =>
          letter.length > 1 ? letter : String.fromCharCode(0x5d0 + (letter.charCodeAt(0) % 22)),
        )
        if (inside === 0) chunk.replace(hebrew, { html: true })
      },
    })
    .transform(page)
}

const index = () => html(names.map(name => `<p><a href="/${name}">${name}</a>`).join(''))

const shoot = async (target: string): Promise<void> => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  })
  const looks = [
    { look: 'phone-light', width: 390, height: 844, colorScheme: 'light', query: '' },
    { look: 'phone-dark', width: 390, height: 844, colorScheme: 'dark', query: '' },
    { look: 'desktop-light', width: 1280, height: 860, colorScheme: 'light', query: '' },
    { look: 'desktop-dark', width: 1280, height: 860, colorScheme: 'dark', query: '' },
    { look: 'narrow', width: 320, height: 640, colorScheme: 'light', query: '' },
    { look: 'rtl', width: 1280, height: 860, colorScheme: 'light', query: '?locale=he' },
    { look: 'rtl-phone', width: 390, height: 844, colorScheme: 'light', query: '?locale=he' },
    { look: 'rtl-dark', width: 390, height: 844, colorScheme: 'dark', query: '?locale=he' },
    { look: 'de', width: 390, height: 844, colorScheme: 'light', query: '?locale=de' },
    { look: 'ja', width: 1280, height: 860, colorScheme: 'light', query: '?locale=ja' },
    { look: 'ja-phone', width: 390, height: 844, colorScheme: 'light', query: '?locale=ja' },
    { look: 'graphite', width: 900, height: 800, colorScheme: 'light', query: '?theme=graphite' },
    { look: 'evergreen', width: 900, height: 800, colorScheme: 'light', query: '?theme=evergreen' },
    { look: 'ember', width: 900, height: 800, colorScheme: 'dark', query: '?theme=ember' },
  ] as const
  for (const { look, width, height, colorScheme, query } of looks) {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme,
      javaScriptEnabled: false,
    })
    const page = await context.newPage()
    for (const name of names) {
      if (!`${name}.${look}`.match(pattern)) continue
      await page.goto(`${server.url}${name}${query}`)
      await page.screenshot({ path: `${target}/${name}.${look}.png`, fullPage: true })
    }
    await context.close()
  }
  await browser.close()
  await server.stop()
}

if (folder) await shoot(folder)
else console.log(String(server.url))
