import { domainToASCII } from 'node:url'
import { fold, normalize } from './text.ts'

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Code units of 16 bits: a character outside the BMP has two, and its `xn--` form at least one of the 253 letters. */
const LONGEST_DOMAIN = 506

/**
 * A host name as it is compared: lower case, non-ASCII labels in their `xn--` form (UTS 46,
 * https://www.unicode.org/reports/tr46/). undefined when it is no domain name of two labels or more.
 */
export const canonicalDomain = (text: string): string | undefined => {
  if (text.length > LONGEST_DOMAIN || normalize(text, 'NFKC') !== text || /[^\p{L}\p{M}\p{N}.-]/u.test(text))
    return undefined
  const domain = domainToASCII(text)
  const labels = domain.split('.')
  const fits = domain.length <= 253 && labels.length > 1 && labels.every(part => label.test(part))
  return fits && !/^\d+$/.test(labels.at(-1) ?? '') ? domain : undefined
}

/** RFC 5321 section 4.5.3.1.1 */
const LONGEST_LOCAL = 64
// RFC 5321 section 4.1.2, Dot-string: https://www.rfc-editor.org/rfc/rfc5321#section-4.1.2
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i

/**
 * An e-mail address as it is compared, in every place: the whole in lower case, the domain as `canonicalDomain` has
 * it. `+tags` and dots stay: to us they are different addresses. undefined for what is no address here: a quoted
 * or non-ASCII local part, an address literal, a trailing dot, a domain of one label, more than 254 characters.
 */
export const canonicalEmail = (text: string): string | undefined => {
  const at = text.lastIndexOf('@')
  const name = text.slice(0, Math.max(at, 0))
  if (name.length > LONGEST_LOCAL || !local.test(name)) return undefined
  const domain = canonicalDomain(text.slice(at + 1))
  const email = `${name.toLowerCase()}@${domain}`
  return domain && email.length <= 254 ? email : undefined
}

/** What a person typed to say who they are, in the form in which user names and addresses are looked up. */
export const foldIdentifier = (text: string): string => canonicalEmail(text.trim()) ?? fold(text.trim())

/** The mailbox that mail to the address most often ends in: `+tags` share one. */
export const mailboxOf = (email: string): string => (canonicalEmail(email) ?? email).replace(/\+[^@]*/, '')
