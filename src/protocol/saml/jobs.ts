import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { SamlReason } from './error.ts'
import { readMetadata } from './metadata.ts'
import { readAuthnRequest } from './read-authn-request.ts'
import { type Expected, readResponse } from './response.ts'
import { signElement } from './sign.ts'

/** A response as it is posted, with all that judges it. */
export interface ResponseInput {
  readonly encoded: string
  /** Keys are PEM: a KeyObject does not cross the border between processes. */
  readonly expected: Omit<Expected, 'keys' | 'decryption_key'> & { keys: string[]; decryption_key: string }
  /** Milliseconds. */
  readonly now: number
}

/** All that is done with XML; `XmlReader` runs it. Each throws `SamlError`. */
export const jobs = {
  response: ({ encoded, expected, now }: ResponseInput) => {
    const keys = expected.keys.map(pem => createPublicKey(pem))
    const judged: Expected = {
      ...expected,
      keys,
      // Parsed for encrypted assertions alone.
      get decryption_key() {
        return createPrivateKey(expected.decryption_key)
      },
    }
    return readResponse(encoded, judged, now)
  },
  metadata: readMetadata,
  authn_request: readAuthnRequest,
  /** For the fake provider of development mode. `key` and `certificate` in PEM. */
  signature: ({ xml, id, key, certificate }: Record<'xml' | 'id' | 'key' | 'certificate', string>) =>
    signElement(xml, id, key, certificate),
}

export type Jobs = typeof jobs
export type JobKind = keyof Jobs
export type JobInput<K extends JobKind> = Parameters<Jobs[K]>[0]
export type JobOutput<K extends JobKind> = ReturnType<Jobs[K]>

/** What a worker is sent. */
export interface JobMessage {
  readonly kind: JobKind
  readonly input: JobInput<JobKind>
}

/** What a worker answers: a result, a refusal of the message, or a fault of the code. */
export type JobAnswer =
  | { readonly result: unknown }
  | { readonly reason: SamlReason; readonly detail: string }
  | { readonly fault: string }
