import { hash, timingSafeEqual } from 'node:crypto'

declare const secret: unique symbol
declare const secretHash: unique symbol

/** A secret in clear text. It is never stored, because columns accept only a `SecretHash`. */
export type Secret = string & { readonly [secret]: true }
/** The SHA-256 of a secret in base64url. Only this hash is stored. */
export type SecretHash = string & { readonly [secretHash]: true }

/** Returns random bytes from the Web Crypto API. `randomBytes` of node:crypto takes ten times as long. */
export const randomOctets = (length: number): Buffer => crypto.getRandomValues(Buffer.alloc(length))

/** Returns 256 random bits in base64url (43 characters) for a token, code, cookie value or handle. */
export const newSecret = (): Secret => randomOctets(32).toString('base64url') as Secret

/**
 * Returns the digest of a presented secret. Generated secrets have full entropy, so one round of SHA-256 is
 * enough. Passwords are hashed in directory/users/password.ts.
 */
export const hashSecret = (presented: string): SecretHash =>
  hash('sha256', presented, 'base64url') as SecretHash

/** Compares two digests of equal length in constant time. */
export const sameHash = (a: SecretHash, b: SecretHash): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'))
