import type { Config } from '#src/config.ts'
import { AppError, forbidden } from '#src/lib/app-error.ts'
import { isIP } from '#src/lib/ip.ts'

/** Loopback addresses, and host names that mean this machine (RFC 6761 section 6.3), as `URL` writes them. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/

/** True when the host of a URL is a loopback name or a loopback address. Both mean this machine. */
export const isLoopbackHost = (hostname: string): boolean => LOOPBACK.test(hostname)

/**
 * True for a loopback address, also in a short form such as `127.1`. The last label of a host name is not a
 * number (RFC 1123 section 2.1), so a name such as `127.0.0.1.example.com` does not match.
 */
export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || /^127(?:\.\d+){1,3}$/.test(address)

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1')

const SAFE = ['GET', 'HEAD', 'OPTIONS']

/**
 * Headers for each answer that does not set them. A document with these headers can run no script and load no
 * file.
 */
const POLICY = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** Header in which the server sends the control token to its own fake providers. */
export const CONTROL_HEADER = 'gatehouse-control'

/**
 * Checks each request in development mode, because the secrets of this mode may be public. A web page of
 * another origin must not send requests to paths below /dev/, and must not reach the server through a host
 * name that the owner of the page controls (DNS rebinding). `controlGuard` in dev-routes.ts checks the
 * caller.
 */
export const hostCheckOf = (config: Config, dev_hosts: readonly string[]) => {
  const urls = [config.url, config.internal_url].flatMap(url => (url ? [new URL(url).hostname] : []))
  const own = new Set([config.host, ...urls, ...dev_hosts].map(host => bare(host.toLowerCase())))
  // A server that listens on all addresses does not know these addresses, so it accepts any IP address as the
  // host. This is safe, because DNS rebinding needs a host name.
  const listensOnAll = ['0.0.0.0', '::'].includes(config.host)
  const answersTo = ({ hostname }: URL): boolean =>
    isLoopbackHost(hostname) || own.has(bare(hostname)) || (listensOnAll && isIP(bare(hostname)) > 0)

  return {
    /**
     * Returns the URL of the request.
     *
     * @throws AppError 421 for any host except the server's own host, loopback hosts and `dev_hosts`. A
     * server that listens on all addresses also accepts IP addresses.
     */
    admit: (request: Request): URL => {
      const url = URL.parse(request.url)
      if (url && answersTo(url)) return url
      throw new AppError(
        'misdirected_request',
        'The server does not accept the host of this request. `gatehouse dev --dev-host NAME` adds a host.',
      )
    },
    /** @throws AppError 403 for a foreign Origin header, and for a cross-site request that may change data */
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
