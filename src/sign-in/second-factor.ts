import type { Context } from '#src/context.ts'
import {
  countRecoveryCodes,
  type Factor,
  listFactors,
  usePasskey,
} from '#src/directory/users/factors/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { enqueueNotice, factorFacts } from '#src/mail/outbox.ts'
import { acrOf, levelWith } from '#src/protocol/oidc/acr.ts'
import type { Transaction } from '#src/storage/store.ts'
import { failLogin } from './failed-login.ts'
import { isKnownDevice } from './known-browsers.ts'
import type { ProvenPasskey } from './passkeys.ts'
import { type ProofRefusal, WRONG, waitFor } from './password.ts'
import { redeemRecoveryCode } from './recovery-codes.ts'
import { removeThrottle } from './store.ts'
import { checkThrottle, type Limit, passwordsFrom, type ThrottleKey } from './throttle.ts'
import { redeemTotp } from './totp.ts'

/** The second factor that the user presents: a typed code, or the signature of a passkey. */
export type Presented =
  | { code: string }
  | { recovery_code: string }
  /** `proven` is undefined when the signature is invalid. */
  | { passkey: Factor | undefined; proven: ProvenPasskey | undefined }

/** `acr` and `amr` of a proven factor, or the refusal that the page shows. */
export type FactorProof = { acr: string; amr: string[]; refusal?: never } | { refusal: ProofRefusal }

/** Limits guesses at six digits to about a hundred a day (NIST SP 800-63B section 3.2.2). */
const GUESSES = {
  kind: 'row',
  after: 5,
  first_wait: SECOND,
  longest_wait: 15 * MINUTE,
  forget_after: 30 * DAY,
} satisfies Limit

/**
 * Returns the throttle key of the attempt. Attempts in a known browser have their own key. Password attempts
 * are counted in the same way.
 */
const guessesOf = async (
  tx: Transaction,
  { id }: Pick<UserRow, 'id'>,
  client_info: ClientInfo,
): Promise<{ guesses: ThrottleKey; is_known: boolean }> => {
  const isKnown = await isKnownDevice(tx, id, client_info)
  const key = isKnown ? `known-factor:${id}:${client_info.device_hash}` : `factor:${id}`
  return { guesses: { key, limit: GUESSES }, is_known: isKnown }
}

/**
 * Verifies and consumes a second factor in one write. Concurrent attempts are thus serialized, and each code
 * is accepted once. A refusal is returned and not thrown, because an error would roll back the write that
 * counts and records it.
 */
export const proveFactor = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  presented: Presented,
  client_info: ClientInfo,
): Promise<FactorProof> => {
  const { guesses, is_known: isKnown } = await guessesOf(tx, user, client_info)
  const keys = [guesses, passwordsFrom(client_info.ip_address)]
  const wait = await checkThrottle(context, tx, isKnown ? [guesses] : keys)
  if (wait > 0) return { refusal: waitFor('throttled', wait) }
  const proof = await redeem(context, tx, user, presented, client_info)
  if (proof.failure_reason === undefined) {
    await removeThrottle(tx, guesses.key)
    return proof
  }
  const { failure_reason } = proof
  await failLogin(context, tx, keys, {
    organization_id: user.organization_id,
    user_id: user.id,
    username_attempted: user.username,
    failure_reason,
    client_info,
  })
  return { refusal: WRONG }
}

/** Recovery codes count as one-time passwords (`otp`), because RFC 8176 has no value for them. */
const ONE_TIME: Redeemed = { acr: acrOf(levelWith('totp')), amr: ['otp', 'mfa'] }

type Redeemed = { acr: string; amr: string[]; failure_reason?: never } | { failure_reason: string }

const redeem = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  presented: Presented,
  client_info: ClientInfo,
): Promise<Redeemed> => {
  const { id } = user
  if ('recovery_code' in presented) {
    if (!(await redeemRecoveryCode(context, tx, id, presented.recovery_code)))
      return { failure_reason: 'wrong_recovery_code' }
    const count = String(await countRecoveryCodes(tx, id))
    await enqueueNotice(context, tx, 'recovery_code_used', user, client_info, { count })
    return ONE_TIME
  }
  if ('code' in presented) {
    for (const factor of await listFactors(tx, id))
      if (await redeemTotp(context, tx, factor, presented.code)) return ONE_TIME
    return { failure_reason: 'wrong_code' }
  }
  const { passkey, proven } = presented
  if (!proven || passkey?.user_id !== id) return { failure_reason: 'wrong_passkey' }
  const { sign_count, amr } = proven
  const use = await usePasskey(tx, { id: passkey.id, sign_count, now: context.clock.now() })
  if (use === 'copied')
    await enqueueNotice(context, tx, 'passkey_copied', user, client_info, factorFacts([passkey]))
  if (use !== 'used') return { failure_reason: use === 'copied' ? 'copied_passkey' : 'wrong_passkey' }
  return { acr: acrOf(levelWith('passkey')), amr }
}
