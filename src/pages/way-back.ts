import type { Config } from '#src/config.ts'

const below = (folder: string, names: string): string[] => names.split(' ').map(name => `${folder}/${name}`)

/** Paths to which a user may be sent back. A GET of one of these pages uses up no link or code. */
const pages: ReadonlySet<string> = new Set([
  '/account',
  ...below(
    '/account',
    'applications change-password data deleted history invitation profile reset-password security set-up',
  ),
  ...below('/account', 'sign-in signed-out verify-email'),
  ...below(
    '/oauth',
    'attributes authorize change-password consent email-code enrol excluded link-account login logout offer-passkey recover',
  ),
  ...below('/oauth', 'reset-password second-factor select-account sign-up terms'),
])

/**
 * Returns the path and query of the page that contained a posted form. `named` is the page that the form
 * names. When the form names no page, the Referer is used. Returns `/account` when the page is unknown or not
 * one of `pages`. A form in a login names its page, because after a refused POST the Referer is a URL that a
 * GET cannot show.
 */
export const wayBack = ({ url }: Pick<Config, 'url'>, request: Request, named?: string): string => {
  const page = URL.parse(named ?? request.headers.get('referer') ?? '', url)
  return page?.origin === url && pages.has(page.pathname) ? page.pathname + page.search : '/account'
}

/**
 * Returns the `organization` (slug) that a URL or path names. Returns undefined when no organization is
 * named.
 */
export const organizationIn = (from: string): string | undefined => {
  const slug = new URLSearchParams(from.split('?')[1]).get('organization') ?? ''
  return /^[a-z0-9-]{1,64}$/.test(slug) ? slug : undefined
}

/**
 * Returns `path` with the organization that the URL or path `from` names. Returns `path` unchanged when
 * `from` names no organization. An account page that was opened for one organization thus leads only to pages
 * of that organization, even when the latest login of the browser belongs to another organization.
 */
export const sameOrganization = (from: string, path: string): string => {
  const slug = organizationIn(from)
  return slug === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}organization=${slug}`
}

/**
 * Returns the page of an account without its query, except for the organization. The query may say that a
 * change was made.
 */
export const withoutNotice = (path: string): string => sameOrganization(path, path.replace(/\?.*/, ''))
