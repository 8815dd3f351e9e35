import { isDynamic, type Origin } from './dynamic-id.ts'

/** Maximum length of a redirect URI in characters. The URI is stored with each pending request. */
const maxLength = 2048
const loopbackHosts = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::|$)/

/**
 * Schemes without a dot that `any_scheme` does not allow, because a browser runs or shows the content of a
 * URI with such a scheme, or handles the URI itself. `checkRegistrable` accepts https, and http on a loopback
 * host, before it reads this set. On other hosts http is refused, because the code would travel unencrypted.
 */
const unsafeSchemes = new Set(
  'about blob content data file filesystem ftp http https intent jar javascript mailto tel vbscript view-source ws wss'.split(
    ' ',
  ),
)

/**
 * Returns the reason why a redirect URI cannot be registered. Returns undefined when the URI can be
 * registered. A redirect URI must use https, http on a loopback host, or a private-use scheme. A private-use
 * scheme contains a dot (https://www.rfc-editor.org/rfc/rfc8252#section-7.1). Schemes that run or show
 * content contain no dot. The host is read from the text itself, because a URL parser turns
 * `http://2130706433` into 127.0.0.1.
 *
 * @param schemes `any_scheme` also allows a scheme without a dot that is not in `unsafeSchemes`; editors use
 * such schemes (`cursor:`)
 */
export const checkRegistrable = (
  uri: string,
  schemes: 'with_dot' | 'any_scheme' = 'with_dot',
): string | undefined => {
  if (uri.length > maxLength) return `must be at most ${maxLength} characters long`
  if (!/^[\x21-\x7e]+$/.test(uri) || /["<>\\^`{|}]/.test(uri)) return 'must contain only URI characters'
  if (uri.includes('#')) return 'must not have a fragment'
  // Redirect URIs are compared byte by byte, so a wildcard would match nothing.
  if (uri.includes('*')) return 'must not have a wildcard'
  const [, scheme, authority] = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?]*))?/.exec(uri) ?? []
  if (scheme === undefined || !URL.canParse(uri)) return 'must be an absolute URI'
  // In `https://example.com@evil.example/` a person may mistake the user name for the host.
  if (authority?.includes('@')) return 'must not contain a user name or password'
  const isWeb = scheme === 'https' || (scheme === 'http' && loopbackHosts.test(authority ?? ''))
  if (isWeb) return authority ? undefined : 'must name a host'
  if (scheme.includes('.')) return undefined
  if (schemes === 'any_scheme' && !unsafeSchemes.has(scheme.toLowerCase())) return undefined
  return 'must use https, http on a loopback host, or a private-use scheme such as com.example.app'
}

const loopbackWithoutPort = /^http:\/\/(?:127\.0\.0\.1|\[::1\])(?=[/?]|$)/
const leadingPort = /^:([1-9]\d{0,4})/

/**
 * Compares redirect URIs byte by byte. A loopback IP address registered without a port matches any port,
 * because a native application gets its port only when it starts to listen
 * (https://www.rfc-editor.org/rfc/rfc8252#section-7.3). The host `localhost` matches only the same port,
 * because the name may resolve to an address that is not a loopback address (section 8.3).
 */
export const matches = (registered: string, requested: string): boolean => {
  if (registered === requested) return true
  const origin = loopbackWithoutPort.exec(registered)?.[0]
  if (origin === undefined || !requested.startsWith(origin)) return false
  const rest = requested.slice(origin.length)
  const [text, port] = leadingPort.exec(rest) ?? []
  return (
    text !== undefined && Number(port) <= 65535 && rest.slice(text.length) === registered.slice(origin.length)
  )
}

const loopbackOrigin = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]))(?::([1-9]\d{0,4}))?(?=[/?]|$)/

/** Returns a loopback URI without its port. Returns undefined for any other URI. */
const withoutPort = (uri: string): string | undefined => {
  const [text = '', origin, port = '1'] = loopbackOrigin.exec(uri) ?? []
  return origin && Number(port) <= 65535 ? origin + uri.slice(text.length) : undefined
}

/** True for a URI at which any program on the device can listen. */
export const isLoopback = (uri: string): boolean => withoutPort(uri) !== undefined

/**
 * True when the answer to the client may be sent to the URI. For a dynamic client the port of a loopback URI
 * is ignored, because such a client may listen on a port other than the registered port.
 */
export const isRedirectOf = (
  client: Origin & { readonly redirect_uris: readonly string[] },
  requested: string,
): boolean => {
  if (client.redirect_uris.some(registered => matches(registered, requested))) return true
  const target = isDynamic(client) ? withoutPort(requested) : undefined
  return target !== undefined && client.redirect_uris.some(registered => withoutPort(registered) === target)
}

/** Returns the URI with parameters added to its query. Undefined parameters are omitted. */
export const withParameters = (
  uri: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string => {
  let result = uri
  let separator = !uri.includes('?') ? '?' : uri.endsWith('?') || uri.endsWith('&') ? '' : '&'
  for (const name in parameters) {
    const value = parameters[name]
    if (value === undefined) continue
    result += `${separator}${encodeURIComponent(name)}=${encodeURIComponent(value)}`
    separator = '&'
  }
  return result
}

/**
 * True for a URI with a private-use scheme. Any application on the device can claim the scheme and get the
 * answers.
 */
export const usesPrivateScheme = (uri: string): boolean => !/^https?:/i.test(uri)

/**
 * Returns the web origin of a registered redirect URI. Returns undefined when the URI has a private-use
 * scheme, or a loopback IP address without a port, because only native applications use such URIs.
 */
export const webOriginOf = (uri: string): string | undefined =>
  usesPrivateScheme(uri) || loopbackWithoutPort.test(uri) ? undefined : new URL(uri).origin

/** True for a URI at which any program on the device can get the answer. */
export const isOnDevice = (uri: string): boolean => isLoopback(uri) || usesPrivateScheme(uri)

/**
 * Returns the host of an http or https URI, including the port if the URI has a port. Returns the scheme of
 * any other URI, such as `com.example.app:`. The host of such a URI is not used, because it is not a DNS name
 * and the client chooses it freely.
 */
export const host = (uri: string): string => {
  const url = URL.parse(uri)
  return (usesPrivateScheme(uri) ? url?.protocol : url?.host) || uri
}
