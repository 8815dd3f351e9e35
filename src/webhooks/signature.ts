import { createHmac, createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto'
import type { Core } from '#src/context.ts'
import type { Webhook } from './store.ts'

// Keys and signatures of webhooks, in the standard form for which libraries exist. The default is the HMAC of
// `v1`, because a few lines of code can verify it without a library. The Ed25519 signature of `v1a` needs no
// secret at the receiver:
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity

type Signature = Webhook['signature']

/** Bytes of a secret; Standard Webhooks asks for 24 to 64. */
const BYTES = 32
/** DER of a PKCS #8 Ed25519 key up to its seed: https://www.rfc-editor.org/rfc/rfc8410#section-7 */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const PREFIXES = { v1: 'whsec_', v1a: 'whsk_' } as const

const keyOf = (seed: Buffer) =>
  createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })

const labelOf = ({ id }: Pick<Webhook, 'id'>): string => `webhook:${id}`

/** Returns a new secret: a key for HMAC-SHA-256, or the seed of an Ed25519 key. */
export const newWebhookSecret = (): Buffer => randomBytes(BYTES)

/** Returns a secret as text, which begins with `whsec_` or `whsk_`. */
export const secretText = (signature: Signature, secret: Buffer): string =>
  PREFIXES[signature] + secret.toString('base64')

/** Parses the text of a secret into its bytes. Returns undefined for a text in another form. */
export const secretOfText = (signature: Signature, text: string): Buffer | undefined => {
  const prefix = PREFIXES[signature]
  const bytes = Buffer.from(text.slice(prefix.length), 'base64')
  const isGood = signature === 'v1' ? bytes.length >= 24 && bytes.length <= 64 : bytes.length === BYTES
  return isGood && secretText(signature, bytes) === text ? bytes : undefined
}

/** Returns the public key of an Ed25519 seed as text, which begins with `whpk_`. */
const publicText = (seed: Buffer): string => {
  const { x = '' } = createPublicKey(keyOf(seed)).export({ format: 'jwk' })
  return `whpk_${Buffer.from(x, 'base64url').toString('base64')}`
}

/** Encrypts a secret for one webhook. */
export const sealWebhookSecret = ({ master }: Core, hook: Pick<Webhook, 'id'>, secret: Buffer): Buffer =>
  master.seal(secret, labelOf(hook))

/**
 * Decrypts `sealed`, which is the current secret by default. Throws when the secret was sealed for another
 * webhook.
 */
export const openWebhookSecret = (
  { master }: Pick<Core, 'master'>,
  hook: Pick<Webhook, 'id' | 'secret'>,
  sealed = hook.secret,
): Buffer => master.open(sealed, labelOf(hook))

/** Returns the public key with which receivers verify; null for HMAC. */
export const publicKeyOf = (core: Core, hook: Webhook): string | null =>
  hook.signature === 'v1' ? null : publicText(openWebhookSecret(core, hook))

/** Returns the signature of a message by one secret. */
export const signMessage = (signature: Signature, secret: Buffer, message: string): string => {
  const bytes =
    signature === 'v1'
      ? createHmac('sha256', secret).update(message).digest()
      : sign(null, Buffer.from(message), keyOf(secret))
  return `${signature},${bytes.toString('base64')}`
}

/**
 * Returns the signatures of a message: by the current secret and, while it is valid, by the previous secret.
 */
export const signaturesOf = (core: Core, hook: Webhook, message: string): string => {
  const sealed = [hook.secret]
  if (hook.previous_secret && (hook.previous_until ?? 0) > core.clock.now()) sealed.push(hook.previous_secret)
  return sealed
    .map(each => openWebhookSecret(core, hook, each))
    .map(secret => signMessage(hook.signature, secret, message))
    .join(' ')
}
