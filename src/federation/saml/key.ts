import { createPrivateKey, hash } from 'node:crypto'
import type { Core, SamlKey } from '#src/context.ts'
import { DAY } from '#src/lib/duration.ts'
import { loadOnce } from '#src/lib/load-once.ts'
import { findSamlKey, insertSamlKey, type StoredKey } from './store.ts'

const LABEL = 'saml_key'
/**
 * Lifetime of the certificate in milliseconds. The lifetime is long, because providers pin the certificate. A
 * new certificate would have to be installed at each provider.
 */
const CERTIFICATE_LIFETIME = 20 * 365 * DAY

/** Returns the function that loads the key once. If loading fails, the next call tries again. */
export const openSamlKey = (core: Core): (() => Promise<SamlKey>) => loadOnce(() => loadKey(core))

const loadKey = async (context: Core): Promise<SamlKey> => {
  const { store, clock } = context
  if (!(await store.read(findSamlKey))) {
    const made = await makeKey(context)
    await store.write(tx => insertSamlKey(tx, made, clock.now()))
  }
  const stored = await store.read(findSamlKey)
  if (!stored) throw new Error('the key of the SAML service provider was not stored')
  return openStoredKey(context, stored)
}

/**
 * Decrypts a stored key pair.
 *
 * @throws Error when the key cannot be decrypted under the instance key
 */
export const openStoredKey = ({ master }: Core, { private_key, certificate }: StoredKey): SamlKey => {
  const pkcs8 = master.open(Buffer.from(private_key, 'base64'), LABEL)
  return {
    id: `saml-${hash('sha256', certificate)}`,
    private_key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }),
    certificate,
  }
}

/**
 * RSA with 3072 bits, because NIST SP 800-57 accepts 2048 bits only until 2030, and the certificate lasts
 * longer.
 */
const algorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 3072,
}

/**
 * Generates an RSA key and a self-signed certificate. The library is imported here, because only the first
 * use of SAML in an instance needs it.
 */
const makeKey = async ({ config, clock, master }: Core): Promise<StoredKey> => {
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const now = clock.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${new URL(config.url).hostname}`,
    // The clock of a provider may be behind.
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
