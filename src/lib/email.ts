import { domainToASCII } from 'node:url'
import { fold, normalize } from './text.ts'

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Maximum length of a domain in 16-bit code units. The `xn--` form has at most 253 characters. A character of
 * the domain has one or two code units and becomes at least one character of the `xn--` form.
 */
const MAX_DOMAIN_LENGTH = 506

/**
 * Returns a host name in the form in which host names are compared: in lower case, with non-ASCII labels as
 * `xn--` (UTS 46, https://www.unicode.org/reports/tr46/). Returns undefined for a text that is not a domain
 * name of at least two labels, and for a name that NFKC would change.
 */
export const canonicalDomain = (text: string): string | undefined => {
  if (
    text.length > MAX_DOMAIN_LENGTH ||
    normalize(text, 'NFKC') !== text ||
    /[^\p{L}\p{M}\p{N}.-]/u.test(text)
  )
    return undefined
  const domain = domainToASCII(text)
  const labels = domain.split('.')
  const fits = domain.length <= 253 && labels.length > 1 && labels.every(part => label.test(part))
  return fits && !/^\d+$/.test(labels.at(-1) ?? '') ? domain : undefined
}

/** Maximum characters before the `@`: https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1.1 */
const MAX_LOCAL_LENGTH = 64
// Dot-string: https://www.rfc-editor.org/rfc/rfc5321#section-4.1.2
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i

/**
 * Returns an e-mail address in the form in which all addresses are compared: lower case, with the domain as
 * `canonicalDomain` returns it. Mail servers ignore case, so addresses that differ only in case belong to one
 * person. `+tags` and dots stay, because they make different addresses. Returns undefined for a text that is
 * no address, and for addresses that few mail servers accept or that can be spelled in several ways. These
 * have a quoted or non-ASCII local part, an address literal, a trailing dot, a domain of one label, more than
 * 64 characters before the `@`, or more than 254 characters.
 */
export const canonicalEmail = (text: string): string | undefined => {
  const at = text.lastIndexOf('@')
  const name = text.slice(0, Math.max(at, 0))
  if (name.length > MAX_LOCAL_LENGTH || !local.test(name)) return undefined
  const domain = canonicalDomain(text.slice(at + 1))
  const email = `${name.toLowerCase()}@${domain}`
  return domain && email.length <= 254 ? email : undefined
}

/** True when the texts are the same e-mail address, which can be spelled in several ways. */
export const isSameEmail = (one: string, other: string): boolean =>
  (canonicalEmail(one) ?? one) === (canonicalEmail(other) ?? other)

/** Returns a user name or e-mail address that a person typed, in the form in which users are looked up. */
export const foldIdentifier = (text: string): string => canonicalEmail(text.trim()) ?? fold(text.trim())

/**
 * Returns the mailbox that usually receives mail to the address. Addresses that differ only in their `+tag`
 * have the same mailbox.
 */
export const mailboxOf = (email: string): string => (canonicalEmail(email) ?? email).replace(/\+[^@]*/, '')
