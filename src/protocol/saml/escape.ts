const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** A text for element content or an attribute value. */
export const escapeXml = (text: string): string => text.replace(/[&<>"']/g, c => entities[c] ?? c)

/** A certificate in PEM, for ds:KeyInfo. */
export const x509Data = (certificate: string): string =>
  `<ds:X509Data><ds:X509Certificate>${certificate.replace(/-----[^-]+-----|\s/g, '')}</ds:X509Certificate></ds:X509Data>`
