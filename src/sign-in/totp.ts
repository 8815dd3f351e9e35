import { createHmac } from 'node:crypto'
import { generateSync, generateURI, ScureBase32Plugin, verifySync } from 'otplib'
import { encode } from 'uqr'
import type { Context } from '#src/context.ts'
import { consumeStep, type Factor } from '#src/directory/users/factors/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Transaction } from '#src/storage/store.ts'

/** Seconds that a code stands for; the ones before and after are taken too (RFC 6238 section 5.2). */
const PERIOD = 30
const SECRET_BYTES = 20

const base32 = new ScureBase32Plugin()

type Keys = Pick<Context, 'master'>

/**
 * The secret that a page offers, in base32. It is worked out from what the page belongs to, so that nothing is stored until its
 * first code has been typed, and a restart in between changes nothing.
 */
export const offerSecret = ({ master }: Keys, subject: string): string =>
  base32.encode(
    createHmac('sha256', master.derive('totp')).update(subject).digest().subarray(0, SECRET_BYTES),
    { padding: false },
  )

const labelOf = (user_id: string): string => `totp:${user_id}`

export const sealSecret = ({ master }: Keys, user_id: string, secret: string): Buffer =>
  master.seal(Buffer.from(secret), labelOf(user_id))

/** Throws when it cannot be opened. */
export const openTotpSecret = (
  { master }: Keys,
  { user_id, secret }: { user_id: string; secret: Uint8Array },
): string => master.open(secret, labelOf(user_id)).toString()

/** The time step of a code that is right now, or undefined. */
export const stepOf = (secret: string, typed: string, now: number): number | undefined => {
  const token = typed.replace(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return undefined
  const result = verifySync({ secret, token, epoch: Math.floor(now / SECOND), epochTolerance: PERIOD })
  return result.valid && 'timeStep' in result ? result.timeStep : undefined
}

/** What the app shows now: for development, which has no phone at hand. */
export const currentCode = (
  context: Keys & Pick<Context, 'clock'>,
  { user_id, secret }: Pick<Factor, 'user_id' | 'secret'>,
): string | undefined =>
  secret
    ? generateSync({
        secret: openTotpSecret(context, { user_id, secret }),
        epoch: Math.floor(context.clock.now() / SECOND),
      })
    : undefined

/** Whether the code is one of this app's, and was not used before. */
export const redeemTotp = async (
  context: Keys & Pick<Context, 'clock'>,
  tx: Transaction,
  { id, user_id, secret }: Factor,
  typed: string,
): Promise<boolean> => {
  if (!secret) return false
  const now = context.clock.now()
  const step = stepOf(openTotpSecret(context, { user_id, secret }), typed, now)
  return step !== undefined && consumeStep(tx, { id, step, now })
}

/** How an app is told: as a picture (a path of unit squares in a square of `size`), as a link on the same device, or typed. */
export const setUpOf = (secret: string, issuer: string, username: string) => {
  const uri = generateURI({ issuer, label: username, secret })
  const { data, size } = encode(uri, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : []))).join('')
  return { uri, qr: { size, path }, key: secret.match(/.{1,4}/g)?.join(' ') ?? secret }
}
