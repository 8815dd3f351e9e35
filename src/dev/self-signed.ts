import { DAY } from '#src/lib/duration.ts'
import { isIP } from '#src/lib/ip.ts'

/**
 * Generates a certificate for the issuer's host and for loopback, valid for 30 days. Each start makes a new
 * certificate.
 */
export const selfSigned = async (host: string): Promise<{ cert: string; key: string }> => {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const names = [...new Set([host.replace(/^\[|\]$/g, ''), 'localhost', '127.0.0.1', '::1'])]
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Gatehouse development',
    notBefore: new Date(Date.now() - DAY),
    notAfter: new Date(Date.now() + 30 * DAY),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.SubjectAlternativeNameExtension(
        names.map(value => ({ type: isIP(value) ? 'ip' : 'dns', value }) as const),
      ),
    ],
  })
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const lines = pkcs8.match(/.{1,64}/g)?.join('\n')
  return {
    cert: certificate.toString('pem'),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  }
}
