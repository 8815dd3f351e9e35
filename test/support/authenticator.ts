import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'
import type { Json } from './app.ts'

/** Deviations of the authenticator from correct or common behaviour. */
interface Quirks {
  origin?: string
  rpId?: string
  /** User verification: biometric or PIN. */
  verified?: boolean
  counter?: number
  userHandle?: string
  challenge?: string
}

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()

/**
 * A passkey in software (WebAuthn level 3, section 6). It is discoverable and signs with ES256. Its answers
 * have the JSON form that the pages post.
 */
export const newPasskey = (
  origin = 'http://localhost:8080',
  aaguid = '00000000-0000-0000-0000-000000000000',
  id = randomBytes(32),
) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  let user_handle = ''
  let counter = 0

  const clientData = (type: string, options: Json, quirks: Quirks) =>
    Buffer.from(
      JSON.stringify({
        type,
        challenge: quirks.challenge ?? options.challenge,
        origin: quirks.origin ?? origin,
        crossOrigin: false,
      }),
    )

  const authenticatorData = (rpId: string, flags: number, rest: Uint8Array = new Uint8Array()) => {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    return Buffer.concat([sha256(rpId), Buffer.of(flags), count, rest])
  }

  const answer = (response: Json) =>
    JSON.stringify({
      id: id.toString('base64url'),
      rawId: id.toString('base64url'),
      type: 'public-key',
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
      response,
    })

  return {
    id: id.toString('base64url'),
    create(options: Json, quirks: Quirks = {}): string {
      user_handle = options.user.id
      const key = isoCBOR.encode(
        new Map<number, number | Uint8Array>([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, new Uint8Array(Buffer.from(x, 'base64url'))],
          [-3, new Uint8Array(Buffer.from(y, 'base64url'))],
        ]),
      )
      const length = Buffer.alloc(2)
      length.writeUInt16BE(id.length)
      const data = authenticatorData(
        quirks.rpId ?? options.rp.id,
        quirks.verified === false ? 0x41 : 0x45,
        Buffer.concat([Buffer.from(aaguid.replaceAll('-', ''), 'hex'), length, id, key]),
      )
      const attestation = isoCBOR.encode(
        new Map<string, Json>([
          ['fmt', 'none'],
          ['attStmt', new Map()],
          ['authData', new Uint8Array(data)],
        ]),
      )
      return answer({
        clientDataJSON: clientData('webauthn.create', options, quirks).toString('base64url'),
        attestationObject: Buffer.from(attestation).toString('base64url'),
        transports: ['internal'],
      })
    },
    get(options: Json, quirks: Quirks = {}): string {
      counter = quirks.counter ?? counter + 1
      const client = clientData('webauthn.get', options, quirks)
      const data = authenticatorData(quirks.rpId ?? options.rpId, quirks.verified === false ? 0x01 : 0x05)
      const signature = createSign('sha256')
        .update(Buffer.concat([data, sha256(client)]))
        .sign(privateKey)
      return answer({
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
        userHandle: quirks.userHandle ?? user_handle,
      })
    },
  }
}
