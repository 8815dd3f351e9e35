import { renderMail } from '#src/mail/render.ts'
import { accentAsset, accentUrl } from '#src/pages/accent.ts'
import { asset } from '#src/pages/assets.ts'
import { render } from '#src/pages/render.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import { letterOf, logos, mailKinds, samples } from './page-samples.ts'

const nameOf = (sample: (typeof samples)[number]) => `${sample.page}.${sample.state}`
const mails = Object.keys(mailKinds) as MailKind[]
/**
 * Names of all pages in each state and of all mails, such as `login.usual` and `mail.new_device`. The server
 * uses the names as paths.
 */
export const names = [...samples.map(nameOf), ...mails.map(kind => `mail.${kind}`)]
const html = (text: string) => new Response(text, { headers: { 'content-type': 'text/html' } })

const index = () => html(names.map(name => `<p><a href="/${name}">${name}</a>`).join(''))

/** Serves all pages and mails. The query can have `locale=de`, `theme=ember` and `accent=2b8a3e`. */
export const servePages = (port = 0) =>
  Bun.serve({
    port,
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
      const colors = accent ? { accent: `#${accent}` } : {}
      const page = render(
        sample.page,
        { ...sample.data, brand: { ...sample.data.brand, theme, sheets, ...colors } },
        { status: sample.status ?? 200, locale },
      )
      // The script of this page would post the form to a client, which the preview lacks.
      if (sample.page === 'form-post') page.headers.append('content-security-policy', "script-src 'none'")
      return page
    },
  })
