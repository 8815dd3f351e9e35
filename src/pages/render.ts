import { Eta } from 'eta/core'
import { direction, locales } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { frameColors } from './accent.ts'
import { assetUrl } from './assets.ts'
import type { Brand, MessageKey, Pages } from './data.ts'
import { languageName, type Translate, translator } from './translate.ts'
import { viewTools } from './view.ts'

const files = embed('templates', ['.eta'])

// Templates of pages use raw output (`<%~`) for includes only. All other output is escaped, so that no name
// or setting becomes markup. A template is compiled at its first use.
const eta = new Eta({ autoEscape: true, cache: true })
eta.resolvePath = name => `${name}.eta`
eta.readFile = path => files[path] ?? ''

const headers = {
  'content-type': 'text/html; charset=utf-8',
  // The policy has no form-action, because Chromium applies form-action to every redirect after a POST,
  // including redirects by the client.
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; font-src 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
  pragma: 'no-cache',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}

/**
 * Headers of a preview that a page of this origin shows in a frame. Scripts and forms do not work in the
 * preview, and no link leaves the frame. `allow-same-origin` lets the preview load its styles. Scripts are
 * forbidden, so the preview gets no other rights.
 */
const stillHeaders = {
  'content-security-policy':
    "default-src 'none'; style-src 'self' data:; img-src 'self' data:; font-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin",
  'x-frame-options': 'SAMEORIGIN',
}

// Pages that a client may show in a pop-up have no Cross-Origin-Opener-Policy, because the header would cut
// the pop-up off from its opener.
const isOwn = (page: keyof Pages): boolean => page.startsWith('account')
const isIsolated = (page: keyof Pages): boolean =>
  isOwn(page) || ['set-up', 'invitation', 'signed-in'].includes(page)

/**
 * True for a page that no GET can show again. Such a page offers no choice of language, because the choice
 * would load the page again and lose the content.
 */
const isShownOnce = (page: keyof Pages, data: Pages[keyof Pages]): boolean =>
  page === 'recovery-codes' ||
  page === 'registration-waiting' ||
  ('sent' in data && data.sent === true) ||
  (page === 'verify-email' && 'account_url' in data)

/** Locale, status and headers of a page. */
export interface RenderOptions {
  /** A locale that `chooseLocale` has returned. */
  locale?: string
  status?: number
  headers?: Record<string, string>
  /**
   * Renders a preview for a frame of this origin. Scripts and forms do not work in the preview
   * (`stillHeaders`).
   */
  is_still?: boolean
}

const headingOf = (page: Exclude<keyof Pages, 'error'>, data: Pages[keyof Pages]): MessageKey => {
  if (page === 'reset-password' && isShownOnce(page, data)) return 'reset-password.sent_title'
  if (page === 'sign-up' && isShownOnce(page, data)) return 'sign-up.sent_title'
  if ('again_url' in data) return 'email-code.sent_title'
  if ('passkey_options' in data) return 'change-password.either'
  if (page === 'verify-email' && isShownOnce(page, data)) return 'verify-email.done_title'
  return `${page}.title`
}

const titleOf = (page: keyof Pages, data: Pages[keyof Pages], t: Translate): string => {
  if ('code' in data) return t(`error.${data.code}.title`)
  const title = t(headingOf(page === 'error' ? 'login' : page, data), {
    client: 'client' in data ? data.client.name : '',
  })
  // The title says that the form was refused, because screen readers read the title of a new page first.
  const refused =
    'error' in data ||
    'picture_error' in data ||
    ('errors' in data && Object.keys(data.errors ?? {}).length > 0)
  return refused ? t('page.error', { title }) : title
}

/**
 * Returns the URLs of a brand's stylesheets in the order in which a page loads them: the theme, the shared
 * styles, the brand's own sheets. Later sheets override earlier ones.
 */
export const sheetsOf = ({ theme, sheets = [] }: Brand): string[] =>
  [
    assetUrl(`themes/${theme}.css`) ?? assetUrl('themes/default.css'),
    assetUrl('style.css'),
    ...sheets,
  ].flatMap(url => url ?? [])

/** Renders a page as a response with the security headers of all pages. */
export const render = <Page extends keyof Pages>(
  page: Page,
  data: Pages[Page],
  { locale = 'en', status = 200, headers: extra = {}, is_still = false }: RenderOptions = {},
): Response => {
  const t = translator(locale)
  const title = titleOf(page, data, t)
  const view = {
    ...data,
    ...viewTools(locale, t),
    page,
    is_own: isOwn(page),
    is_still,
    is_shown_once: isShownOnce(page, data),
    languages: locales.map(tag => ({ tag, name: languageName(tag) })),
    language: languageName(locale),
    t,
    title,
    sheets: sheetsOf(data.brand),
    frame_colors: frameColors(data.brand),
    locale,
    dir: direction(locale),
    url: assetUrl,
  }
  const html = eta.render('layout', view)
  return new Response(html, {
    status,
    headers: {
      ...headers,
      ...(is_still && stillHeaders),
      'content-language': locale,
      // With no-referrer Chromium would post `Origin: null`, which `checkOrigin` refuses. The page of
      // form_post is an exception, because its form posts to the client. The client must not see the URL of
      // the page, which is an authorization request.
      'referrer-policy': html.includes('<form') && page !== 'form-post' ? 'same-origin' : 'no-referrer',
      ...(isIsolated(page) && { 'cross-origin-opener-policy': 'same-origin' }),
      ...extra,
    },
  })
}
