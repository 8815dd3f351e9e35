import { generateSync, generateURI, ScureBase32Plugin, verifySync } from 'otplib'
import { encode } from 'uqr'
import type { Core } from '#src/context.ts'
import { consumeStep, type Factor } from '#src/directory/users/factors/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import { typedCode } from '#src/lib/text.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Length of a time step in seconds. Codes of the step before and the step after are accepted too, because
 * clocks differ and typing takes time: https://www.rfc-editor.org/rfc/rfc6238#section-5.2
 */
const PERIOD = 30
/** Recommended length of a secret in bytes: https://www.rfc-editor.org/rfc/rfc4226#section-4 (R6) */
const SECRET_BYTES = 20

const base32 = new ScureBase32Plugin()

/**
 * Derives the TOTP secret that an enrolment page offers, in base32. The secret is stored only when its first
 * code is verified. Because the secret is derived, the page shows the same secret after a restart.
 */
export const offerSecret = ({ master }: Core, subject: string): string =>
  base32.encode(master.hmac('totp').update(subject).digest().subarray(0, SECRET_BYTES), { padding: false })

const labelOf = (user_id: string): string => `totp:${user_id}`

/** Encrypts a TOTP secret for one user. */
export const sealSecret = ({ master }: Core, user_id: string, secret: string): Buffer =>
  master.seal(Buffer.from(secret), labelOf(user_id))

/**
 * Decrypts a stored secret.
 *
 * @throws Error when the secret cannot be decrypted
 */
export const openTotpSecret = (
  { master }: Core,
  { user_id, secret }: { user_id: string; secret: Uint8Array },
): string => master.open(secret, labelOf(user_id)).toString()

/** Returns the time step of a valid code. Returns undefined for any other code. */
export const stepOf = (secret: string, typed: string, now: number): number | undefined => {
  const token = typedCode(typed)
  if (!/^\d{6}$/.test(token)) return undefined
  const result = verifySync({ secret, token, epoch: Math.floor(now / SECOND), epochTolerance: PERIOD })
  return result.valid && 'timeStep' in result ? result.timeStep : undefined
}

/** Returns the code that the authenticator app shows now, for development mode. */
export const currentCode = (
  context: Core,
  { user_id, secret }: Pick<Factor, 'user_id' | 'secret'>,
): string | undefined =>
  secret
    ? generateSync({
        secret: openTotpSecret(context, { user_id, secret }),
        epoch: Math.floor(context.clock.now() / SECOND),
      })
    : undefined

/**
 * Consumes a code, so that an observed code cannot be used again. Returns true when the code is valid for
 * this app and no code of the same or a later time step was used.
 */
export const redeemTotp = async (
  context: Core,
  tx: Transaction,
  { id, user_id, secret }: Factor,
  typed: string,
): Promise<boolean> => {
  if (!secret) return false
  const now = context.clock.now()
  const step = stepOf(openTotpSecret(context, { user_id, secret }), typed, now)
  return step !== undefined && consumeStep(tx, { id, step, now })
}

/**
 * Returns the secret in three forms: as a QR code, as an otpauth URI, and as text in groups of four
 * characters. The QR code is an SVG path of unit squares; its width and height are `size`. The URI has no
 * colon of the issuer, because its label separates issuer and user name by a colon:
 * https://github.com/google/google-authenticator/wiki/Key-Uri-Format
 */
export const setUpOf = (secret: string, issuer: string, username: string) => {
  const uri = generateURI({ issuer: issuer.replaceAll(':', ''), label: username, secret })
  const { data, size } = encode(uri, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : []))).join('')
  return { uri, qr: { size, path }, key: secret.match(/.{1,4}/g)?.join(' ') ?? secret }
}
