import { SamlError } from './error.ts'

const instant = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z$/

/**
 * Parses a SAML time into milliseconds since the epoch. A SAML time is an xs:dateTime in UTC without leap
 * seconds (SAML Core section 1.3.3).
 *
 * @throws SamlError `bad_time`
 */
export const parseTime = (text: string): number => {
  const parts = instant.exec(text)
  // Date.parse turns 30 February and 24 o'clock into a later day, so the result is compared with the text.
  const ms = parts ? Date.parse(`${text.slice(0, 19)}Z`) : Number.NaN
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(text.slice(0, 19)))
    throw new SamlError('bad_time', 'not a time in UTC')
  return ms + Math.trunc(Number(`0.${parts?.[7] ?? 0}`) * 1000)
}

/** Formats milliseconds since the epoch as SAML time, in whole seconds. */
export const formatTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
