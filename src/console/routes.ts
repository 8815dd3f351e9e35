import { gunzipSync } from 'node:zlib'
import { waysIn } from '#src/authorize/ways-in.ts'
import type { Context } from '#src/context.ts'
import { openLooks } from '#src/directory/organizations/preview.ts'
import { findOrganization, findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { direction, FALLBACK_LOCALE } from '#src/http/locale.ts'
import { assetUrl } from '#src/pages/assets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { pageRoutes } from '#src/pages/page-routes.ts'
import { render } from '#src/pages/render.ts'
import type { ConsoleFiles } from './bundle.ts'

/**
 * Content security policy of the console. The console loads nothing from other origins. No string becomes
 * markup or code, because Trusted Types are required and scripts cannot create a Trusted Types policy.
 * https://www.w3.org/TR/trusted-types/
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const SHELL_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
}

/** Returns the files of the console. When the server runs from source, the first request runs the bundler. */
const filesOf = async (): Promise<ConsoleFiles> => (await import('./files.ts')).consoleFiles

const urlOf = (name: string) => `/console/assets/${name}`

const shell = async ({ config, mail }: Context, wanted: string): Promise<Response> => {
  const { style, first, words } = await filesOf()
  const locale = words[wanted] ? wanted : FALLBACK_LOCALE
  const [script, ...others] = [...first, words[locale] ?? ''].map(urlOf)
  const data = `data-issuer="${Bun.escapeHTML(config.url)}" data-mail="${mail ? 'on' : 'off'}"`
  return new Response(
    `<!doctype html>
<html lang="${locale}" dir="${direction(locale)}" ${data}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Gatehouse</title>
<link rel="icon" href="${assetUrl('gate.svg')}">
<link rel="stylesheet" href="${urlOf(style)}">
<script type="module" src="${script}"></script>
${others.map(url => `<link rel="modulepreload" href="${url}">`).join('\n')}
</head>
<body><noscript>The console needs JavaScript. <a href="/account">Your account</a> works without it.</noscript></body>
</html>
`,
    { headers: SHELL_HEADERS },
  )
}

const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' }

/**
 * True when the header Accept-Encoding lists the coding and its weight is not 0:
 * https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3
 */
const accepts = (accepted: string, coding: string): boolean =>
  accepted.split(',').some(each => {
    const [name = '', weight = ''] = each.split(';')
    return name.trim().toLowerCase() === coding && !/^\s*q=0(?:\.0*)?\s*$/i.test(weight)
  })

const file = async (name: string, accepted: string): Promise<Response> => {
  const found = (await filesOf()).files.find(each => each.name === name)
  if (!found) throw new PageError('not_found', 404)
  const encoding = (['br', 'gzip'] as const).find(each => accepts(accepted, each))
  const packed = Uint8Array.fromBase64(encoding === 'br' ? found.brotli : found.gzip)
  return new Response(encoding ? packed : gunzipSync(packed), {
    headers: {
      'content-type': types[name.endsWith('.js') ? 'js' : 'css'],
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      ...(encoding && { 'content-encoding': encoding }),
    },
  })
}

/**
 * Maximum bytes of a posted preview: enough for two logos and the CSS at their maximum sizes, sealed and in
 * base64.
 */
const LOOKS = 512 * 1024

/**
 * Answers with the login page in the unsaved appearance that the console posts into a frame. Only a frame of
 * this origin gets the page. Otherwise another site could show a login page in the appearance of its choice.
 */
const preview = async (context: Context, { request, locale }: Call): Promise<Response> => {
  const { headers } = request
  const isFramed =
    headers.get('sec-fetch-site') === 'same-origin' && headers.get('sec-fetch-dest') === 'iframe'
  if (!isFramed) throw new PageError('forbidden', 403)
  // Only the first field is parsed, because the console posts no other. To parse all fields of the largest
  // body that the limit permits would take 12 ms.
  const [field] = (await readForm(request, LOOKS)).split('&', 1)
  const looks = openLooks(context, new URLSearchParams(field).get('looks') ?? '')
  const organization = looks && (await findOrganization(context.store, looks.organization_id))
  if (!organization) throw new PageError('expired', 400)
  const { brand } = looks
  const nothing = { action: '', request: '', csrf_token: '' }
  const ways = await waysIn(context, organization, '', () => '')
  return render('login', { brand, ...nothing, client_name: brand.name, ...ways }, { locale, is_still: true })
}

/**
 * Answers with the page of the console. `?organization=SLUG` redirects to the same path with the
 * organization's id, which a login needs.
 */
const page = async (context: Context, { request, locale }: Call): Promise<Response> => {
  const { pathname, searchParams } = new URL(request.url)
  const slug = searchParams.get('organization') ?? ''
  const isSlug = /^[a-z0-9-]{3,64}$/.test(slug)
  const organization = isSlug ? await findOrganizationBySlug(context.store, slug) : undefined
  if (!organization) return shell(context, locale)
  searchParams.set('organization', organization.id)
  return seeOther(`${pathname}?${searchParams}`)
}

/**
 * Returns the routes of the console: its files, the preview of the login page, and the page for every other
 * path below `/console`. Returns no routes when the setting `console` is off.
 */
export const consoleRoutes = (context: Context) =>
  pageRoutes(
    context,
    context.config.console === 'off'
      ? {}
      : {
          'GET /console': call => page(context, call),
          'GET /console/*': call => page(context, call),
          'POST /console/preview': call => preview(context, call),
          'GET /console/assets/:file': ({ request }, { file: name = '' }) =>
            file(name, request.headers.get('accept-encoding') ?? ''),
        },
  )
