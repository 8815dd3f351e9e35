import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

declare const secret: unique symbol
declare const secretHash: unique symbol

/** A secret as its holder knows it. It never reaches a store: columns take a `SecretHash`. */
export type Secret = string & { readonly [secret]: true }
/** The SHA-256 of a secret, base64url: all that is stored of one. */
export type SecretHash = string & { readonly [secretHash]: true }

/** 256 random bits, base64url (43 characters): tokens, codes, cookie values, handles. */
export const newSecret = (): Secret => randomBytes(32).toString('base64url') as Secret

/** Digest of what a caller presented. Our secrets have full entropy, so one round of SHA-256 is enough. */
export const hashSecret = (presented: string): SecretHash =>
  hash('sha256', presented, 'base64url') as SecretHash

/** Constant-time comparison of two digests of equal length. */
export const sameHash = (a: SecretHash, b: SecretHash): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
