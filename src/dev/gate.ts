import { isIP } from 'node:net'
import type { Config } from '#src/config.ts'
import { AppError, forbidden } from '#src/lib/app-error.ts'

/** Hosts that resolve to this machine (RFC 6761 section 6.3), as `URL` spells them. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/

/** True for a URL's host that resolves to this machine. */
export const isLoopbackHost = (hostname: string): boolean => LOOPBACK.test(hostname)

/** True for an IP address of this machine. */
export const isLoopbackAddress = (address: string): boolean => address === '::1' || address.startsWith('127.')

/** Returns the address of a URL's host, without the brackets of IPv6. */
export const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1')

const SAFE = ['GET', 'HEAD', 'OPTIONS']

/** Policy of answers that set none: they run and load nothing. */
const POLICY = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** Header with the control token in the server's own calls of the fake providers. */
export const CONTROL_HEADER = 'gatehouse-control'

/**
 * Checks before each request in development mode, whose secrets may be public: a web page of another origin
 * must not reach the server through a name that it controls (DNS rebinding), nor send requests below /dev/.
 */
export const gateOf = (config: Config, dev_hosts: readonly string[]) => {
  const urls = [config.url, config.internal_url].flatMap(url => (url ? [new URL(url).hostname] : []))
  const own = new Set([config.host, ...urls, ...dev_hosts].map(host => bare(host.toLowerCase())))
  // A server on all addresses does not know its own addresses. An IP address cannot be rebound by DNS.
  const listensOnAll = ['0.0.0.0', '::'].includes(config.host)
  const answersTo = ({ hostname }: URL): boolean =>
    isLoopbackHost(hostname) || own.has(bare(hostname)) || (listensOnAll && isIP(bare(hostname)) > 0)

  return {
    /**
     * Returns the URL of the request.
     *
     * @throws AppError 421 unless the host is the server's own, loopback or one of `dev_hosts`
     */
    admit: (request: Request): URL => {
      const url = URL.parse(request.url)
      if (url && answersTo(url)) return url
      throw new AppError(
        'misdirected_request',
        'The server does not answer to the host of this request. `gatehouse dev --dev-host NAME` adds a host.',
      )
    },
    /** @throws AppError 403 for a request from a page of another origin */
    requireOwnOrigin: ({ method, headers }: Request, url: URL): void => {
      const origin = headers.get('origin')
      const isForeign = origin !== null && origin !== url.origin && origin !== config.url
      const isCrossSite = !SAFE.includes(method) && headers.get('sec-fetch-site') === 'cross-site'
      if (isForeign || isCrossSite) throw forbidden('Pages of other origins may not send this request.')
    },
    /** Adds the security headers to an answer of development mode. */
    harden: (answer: Response): Response => {
      for (const [name, value] of Object.entries(POLICY))
        if (!answer.headers.has(name)) answer.headers.set(name, value)
      return answer
    },
  }
}
