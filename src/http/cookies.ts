import type { Config } from '#src/config.ts'
import type { CookieNames, Core } from '#src/context.ts'
import { hashSecret, type SecretHash } from '#src/lib/secrets.ts'

const isHttps = (config: Config): boolean => config.url.startsWith('https:')

/**
 * Returns the names of the cookies. They begin with `__Host-` when `config.url` is https, so that no other
 * host of the domain can set them. On http, the names contain the port, because a browser sends a cookie to
 * all ports of a host.
 */
export const cookieNames = (config: Config): CookieNames => {
  const [before, after] = isHttps(config) ? ['__Host-', ''] : ['', `_${new URL(config.url).port || 80}`]
  const name = (what: string) => `${before}gatehouse_${what}${after}`
  return {
    login: name('login'),
    browser: name('browser'),
    device: name('device'),
    link: name('link'),
    remembered: name('remembered'),
    language: name('language'),
  }
}

/** Returns the value of the first cookie with this name. Values are opaque and are not decoded. */
export const findCookie = (request: Request, name: string): string | undefined => {
  const header = request.headers.get('cookie')
  if (header === null) return undefined
  for (const pair of header.split(';')) {
    const text = pair.trimStart()
    if (text.startsWith(name) && text[name.length] === '=') return text.slice(name.length + 1).trimEnd()
  }
  return undefined
}

/**
 * Returns a Set-Cookie line. Without `max_age` (seconds) the cookie ends when the browser is closed. SameSite
 * is Lax, because with Strict the browser would not send the login cookie after a redirect from an
 * application.
 */
export const setCookie = (config: Config, name: string, value: string, max_age?: number): string =>
  `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isHttps(config) ? '; Secure' : ''}` +
  (max_age === undefined ? '' : `; Max-Age=${Math.floor(max_age)}`)

/** Returns the Set-Cookie line that deletes a cookie. */
export const clearCookie = (config: Config, name: string): string => setCookie(config, name, '', 0)

const hashOf = (request: Request, name: string): SecretHash | undefined => {
  const value = findCookie(request, name)
  return value ? hashSecret(value) : undefined
}

/** Returns the hash of the login cookie. */
export const loginHash = ({ cookies }: Core, request: Request): SecretHash | undefined =>
  hashOf(request, cookies.login)

/** Returns the hash of the device cookie. */
export const deviceHash = ({ cookies }: Core, request: Request): SecretHash | undefined =>
  hashOf(request, cookies.device)

/** Returns the hash of the cookie of a remembered browser. */
export const rememberedHash = ({ cookies }: Core, request: Request): SecretHash | undefined =>
  hashOf(request, cookies.remembered)

/** Returns the hash of the browser cookie. */
export const browserHash = ({ cookies }: Core, request: Request): SecretHash | undefined =>
  hashOf(request, cookies.browser)

/** Adds Set-Cookie lines to the response and returns the response. */
export const withCookies = (response: Response, cookies: readonly string[]): Response => {
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}
