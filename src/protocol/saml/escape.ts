const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** Escapes text for element content or an attribute value. */
export const escapeXml = (text: string): string => text.replace(/[&<>"']/g, c => entities[c] ?? c)

/** Returns the ds:KeyInfo content for a PEM certificate. */
export const x509Data = (certificate: string): string =>
  `<ds:X509Data><ds:X509Certificate>${certificate.replace(/-----[^-]+-----|\s/g, '')}</ds:X509Certificate></ds:X509Data>`
