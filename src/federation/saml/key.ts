import { createPrivateKey, hash, type KeyObject } from 'node:crypto'
import type { Context } from '#src/context.ts'
import { DAY } from '#src/lib/duration.ts'
import { findSamlKey, insertSamlKey, type StoredKey } from './store.ts'

/** Key pair of the service provider: signs requests and decrypts responses. */
export interface SamlKey {
  /** Distinguishes the keys of several servers in one process. */
  readonly id: string
  readonly private_key: KeyObject
  /** DER in base64. */
  readonly certificate: string
}

const LABEL = 'saml_key'
/** Milliseconds. Providers pin the certificate, so a new one would have to be installed at each of them. */
const CERTIFICATE_LIFETIME = 20 * 365 * DAY

const keys = new WeakMap<Context['store'], Promise<SamlKey>>()

/** Returns the key of the instance; creates it at the first use and keeps it from then on. */
export const samlKey = (context: Context): Promise<SamlKey> => {
  const known = keys.get(context.store)
  if (known) return known
  const key = loadKey(context)
  keys.set(context.store, key)
  key.catch(() => keys.delete(context.store))
  return key
}

const loadKey = async (context: Context): Promise<SamlKey> => {
  const { store, clock } = context
  if (!(await store.read(findSamlKey))) {
    const made = await makeKey(context)
    await store.write(tx => insertSamlKey(tx, made, clock.now()))
  }
  const stored = await store.read(findSamlKey)
  if (!stored) throw new Error('the key of the SAML service provider was not stored')
  return openStoredKey(context, stored)
}

/** @throws Error when the master key does not open the stored key */
export const openStoredKey = (
  { master }: Pick<Context, 'master'>,
  { private_key, certificate }: StoredKey,
): SamlKey => {
  const pkcs8 = master.open(Buffer.from(private_key, 'base64'), LABEL)
  return {
    id: `saml-${hash('sha256', certificate)}`,
    private_key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }),
    certificate,
  }
}

const algorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 3072,
}

/**
 * Generates an RSA key and a self-signed certificate. Imports the library here because it is needed once per
 * instance.
 */
const makeKey = async ({ config, clock, master }: Context): Promise<StoredKey> => {
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const now = clock.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${new URL(config.url).hostname}`,
    notBefore: new Date(now - DAY),
    notAfter: new Date(now + CERTIFICATE_LIFETIME),
    signingAlgorithm: algorithm,
    keys: pair,
  })
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', pair.privateKey)
  return {
    private_key: master.seal(new Uint8Array(pkcs8), LABEL).toString('base64'),
    certificate: Buffer.from(certificate.rawData).toString('base64'),
  }
}
