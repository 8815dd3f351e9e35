import 'reflect-metadata'
import { X509Certificate } from 'node:crypto'
import { X509CertificateGenerator } from '@peculiar/x509'

const ES256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/**
 * Returns a self-signed certificate as PEM. It is valid from the start of the year `from` to the start of the
 * year `to` (UTC).
 */
export const newCertificate = async (
  name: string,
  from: number,
  to: number,
  signing: typeof ES256 | 'Ed25519' = ES256,
): Promise<string> => {
  const keys = (await crypto.subtle.generateKey(signing, true, ['sign', 'verify'])) as CryptoKeyPair
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: typeof signing === 'string' ? { name: signing } : signing,
    notBefore: new Date(Date.UTC(from, 0)),
    notAfter: new Date(Date.UTC(to, 0)),
  })
  return certificate.toString('pem')
}

/** Returns the certificate as PEM. Its key is on a curve that the runtime does not know. */
export const onUnknownCurve = (pem: string): string => {
  const der = new X509Certificate(pem).raw
  const curve = Buffer.from('2a8648ce3d030107', 'hex')
  const at = der.indexOf(curve)
  if (at < 0) throw new Error('The key of the certificate is not on P-256.')
  der[at + curve.length - 1] = 0x70
  return new X509Certificate(der).toString()
}
