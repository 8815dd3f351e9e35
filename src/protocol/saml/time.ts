import { SamlError } from './error.ts'

const instant = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z$/

/**
 * An xs:dateTime as SAML writes it, UTC and no leap second, in milliseconds: saml-core section 1.3.3.
 *
 * @throws SamlError `bad_time`
 */
export const parseTime = (text: string): number => {
  const parts = instant.exec(text)
  // 30 February and 25 o'clock roll over instead of failing: only a real time reads back as it was written.
  const ms = parts ? Date.parse(`${text.slice(0, 19)}Z`) : Number.NaN
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text.slice(0, 19)))
    throw new SamlError('bad_time', 'not a time in UTC')
  return ms + Math.trunc(Number(`0.${parts?.[7] ?? 0}`) * 1000)
}

/** Milliseconds since the epoch as SAML writes them, in whole seconds. */
export const formatTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
