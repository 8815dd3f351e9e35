import 'reflect-metadata'
import { X509CertificateGenerator } from '@peculiar/x509'

const ES256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Returns a self-signed certificate as PEM, valid from one year (UTC) to another. */
export const newCertificate = async (name: string, from: number, to: number): Promise<string> => {
  const keys = await crypto.subtle.generateKey(ES256, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: ES256,
    notBefore: new Date(Date.UTC(from, 0)),
    notAfter: new Date(Date.UTC(to, 0)),
  })
  return certificate.toString('pem')
}
