import { isIP } from './ip.ts'

/**
 * True when browsers support passkeys at this URL. The host must be `localhost`, or the URL must be https
 * with a domain name. An IP address does not suffice, because a passkey belongs to a domain
 * (https://www.w3.org/TR/webauthn-3/#relying-party-identifier).
 */
export const offersPasskeys = ({ url }: { readonly url: string }): boolean => {
  const host = new URL(url).hostname
  return host === 'localhost' || (url.startsWith('https:') && isIP(host.replace(/^\[|\]$/g, '')) === 0)
}
