import { randomInt } from 'node:crypto'
import type { Core } from '#src/context.ts'
import {
  consumeRecoveryCode,
  hasRecoveryCode,
  replaceRecoveryCodes,
} from '#src/directory/users/factors/store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { typedCode } from '#src/lib/text.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Number of codes. A person uses one code for each lost device. Ten codes fit on a small printout. */
const COUNT = 10
const GROUPS = 3
const LETTERS = 4
/**
 * Characters of a code, without i, l, o and u, which are easily confused:
 * https://www.crockford.com/base32.html
 */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Generates a code of 60 random bits: `k3vq-8zt2-m0ax`. */
const newCode = (): string =>
  Array.from({ length: GROUPS }, () =>
    Array.from({ length: LETTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join(''),
  ).join('-')

/** Returns the canonical form of a typed code. Returns undefined when the code is malformed. */
const normalize = (typed: string): string | undefined => {
  const text = typedCode(typed).toLowerCase().replaceAll('o', '0').replace(/[il]/g, '1')
  return text.length === GROUPS * LETTERS && [...text].every(letter => ALPHABET.includes(letter))
    ? text
    : undefined
}

/**
 * Hashes a code with a key. If the hash had no key, somebody with a copy of the database could find the 60
 * bits of a code by trial.
 */
const hashOf = ({ master }: Core, user_id: UserId, code: string): string =>
  master.hmac('recovery-codes').update(`${user_id}\0${code}`).digest('base64url')

/**
 * Replaces the user's recovery codes with ten new codes. Only hashes are stored, so the returned codes cannot
 * be shown later. Removes the remembered browsers of the user, because each change of the credentials must do
 * this (RMB-04).
 */
export const issueRecoveryCodes = async (
  context: Core,
  tx: Transaction,
  user_id: UserId,
): Promise<string[]> => {
  const codes = Array.from({ length: COUNT }, newCode)
  const hashes = codes.map(code => hashOf(context, user_id, code.replaceAll('-', '')))
  await replaceRecoveryCodes(tx, user_id, hashes)
  await removeRemembered(tx, user_id)
  return codes
}

/** True for an unused code of the user. The work is the same for a wrong code. */
export const isRecoveryCode = async (
  context: Core,
  q: Queries,
  user_id: UserId,
  typed: string,
): Promise<boolean> => hasRecoveryCode(q, user_id, hashOf(context, user_id, normalize(typed) ?? ''))

/** Uses up a code of the user. Returns false for a code that is wrong or was used before. */
export const redeemRecoveryCode = async (
  context: Core,
  tx: Transaction,
  user_id: UserId,
  typed: string,
): Promise<boolean> => {
  const code = normalize(typed)
  if (code === undefined || !(await consumeRecoveryCode(tx, user_id, hashOf(context, user_id, code))))
    return false
  // A user who has lost a factor may have lost a remembered browser too.
  await removeRemembered(tx, user_id)
  return true
}
