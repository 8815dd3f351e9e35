const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** A text for element content or an attribute value. */
export const escapeXml = (text: string): string => text.replace(/[&<>"']/g, c => entities[c] ?? c)
