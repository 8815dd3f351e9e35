import { isIP } from './ip.ts'

/**
 * True when browsers support passkeys at this URL: https or localhost, with a host name and not an IP
 * address.
 */
export const offersPasskeys = ({ url }: { readonly url: string }): boolean => {
  const host = new URL(url).hostname
  return host === 'localhost' || (url.startsWith('https:') && isIP(host.replace(/^\[|\]$/g, '')) === 0)
}
