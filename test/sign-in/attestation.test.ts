import 'reflect-metadata'
import { afterAll, expect, test } from 'bun:test'
import {
  CRLDistributionPointsExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { SettingsService } from '@simplewebauthn/server'
import { decodeAttestationObject, isoCBOR } from '@simplewebauthn/server/helpers'
import { verifyRegistration } from '#src/sign-in/passkeys.ts'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'

const ES256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const app = await startApp()

const calls: string[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: ({ url }) => {
    calls.push(url)
    return new Response('no list')
  },
})
afterAll(() => server.stop(true))

const newKeys = () => crypto.subtle.generateKey(ES256, true, ['sign', 'verify'])
const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) }

/**
 * Returns a trusted root, and a certificate that the root has issued. The certificate names the address of a
 * revocation list.
 */
const newChain = async (list: string): Promise<{ root: X509Certificate; leaf: X509Certificate }> => {
  const [rootKeys, leafKeys] = [await newKeys(), await newKeys()]
  const root = await X509CertificateGenerator.createSelfSigned({
    ...{ name: 'CN=Root', keys: rootKeys, signingAlgorithm: ES256 },
    ...validity,
  })
  const leaf = await X509CertificateGenerator.create({
    ...{ subject: 'CN=Passkey', issuer: 'CN=Root', publicKey: leafKeys.publicKey },
    ...{ signingKey: rootKeys.privateKey, signingAlgorithm: ES256, ...validity },
    extensions: [new CRLDistributionPointsExtension([list])],
  })
  return { root, leaf }
}

/** Returns the registration of a new passkey with another attestation statement. */
const registrationWith = (fmt: string, attStmt: Map<string, unknown>, challenge: string): string => {
  const options = { challenge, rp: { id: 'localhost' }, user: { id: 'dXNy' } }
  const credential = JSON.parse(newPasskey().create(options))
  const { response } = credential
  const bytes = new Uint8Array(Buffer.from(response.attestationObject, 'base64url'))
  const object: [string, unknown][] = [
    ['fmt', fmt],
    ['attStmt', attStmt],
    ['authData', decodeAttestationObject(bytes).get('authData')],
  ]
  const encoded = isoCBOR.encode(new Map(object) as Parameters<typeof isoCBOR.encode>[0])
  response.attestationObject = Buffer.from(encoded).toString('base64url')
  return JSON.stringify(credential)
}

test.each(['apple', 'android-key', 'packed', 'tpm', 'unknown'])(
  'H-58 an attestation statement of the format %s is not read: no address in a certificate is called',
  async fmt => {
    const { root, leaf } = await newChain(`http://127.0.0.1:${server.port}/list.crl`)
    SettingsService.setRootCertificates({ identifier: 'apple', certificates: [root.toString('pem')] })
    const statement = new Map<string, unknown>([['x5c', [new Uint8Array(leaf.rawData)]]])
    const passkey = await verifyRegistration(app.context, registrationWith(fmt, statement, 'c'), 'c')
    expect(calls).toEqual([])
    expect(passkey).toMatchObject({ type: 'passkey', sign_count: 0, alone: false })
  },
)
