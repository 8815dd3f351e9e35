import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { SamlReason } from './error.ts'
import { readMetadata } from './metadata.ts'
import { readAuthnRequest } from './read-authn-request.ts'
import { type Expected, readResponse } from './response.ts'
import { signElement } from './sign.ts'

/** A posted response, and the values that its validation expects. */
export interface ResponseInput {
  readonly encoded: string
  /** Keys are PEM, because a KeyObject cannot be sent to a worker. */
  readonly expected: Omit<Expected, 'keys' | 'decryption_key'> & { keys: string[]; decryption_key: string }
  /** Milliseconds. */
  readonly now: number
}

/**
 * The jobs of `XmlReader`. They parse all XML, and sign the messages of the fake provider. A job throws
 * SamlError for a message that it refuses.
 */
export const jobs = {
  response: ({ encoded, expected, now }: ResponseInput) => {
    const keys = expected.keys.map(pem => createPublicKey(pem))
    const withKeys: Expected = {
      ...expected,
      keys,
      // This is a getter, so that the key is parsed only when an assertion is encrypted.
      get decryption_key() {
        return createPrivateKey(expected.decryption_key)
      },
    }
    return readResponse(encoded, withKeys, now)
  },
  metadata: readMetadata,
  authn_request: readAuthnRequest,
  /** Signs a message of the fake provider of development mode. `key` and `certificate` are PEM. */
  signature: ({ xml, id, key, certificate }: Record<'xml' | 'id' | 'key' | 'certificate', string>) =>
    signElement(xml, id, key, certificate),
}

export type Jobs = typeof jobs
export type JobKind = keyof Jobs
export type JobInput<K extends JobKind> = Parameters<Jobs[K]>[0]
export type JobOutput<K extends JobKind> = ReturnType<Jobs[K]>

/** Message to a worker. */
export interface JobMessage {
  readonly kind: JobKind
  readonly input: JobInput<JobKind>
}

/** Answer of a worker: a result, the refusal of a message, or an unexpected error. */
export type JobAnswer =
  | { readonly result: unknown }
  | { readonly reason: SamlReason; readonly detail: string }
  | { readonly fault: string }
