import type { Core } from '#src/context.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Call } from './call.ts'
import { charge } from './rate-limits.ts'

/**
 * Maximum characters of a text in the log. The limit is low, because strangers choose the text. A common
 * redirect URI fits.
 */
const MAX_LENGTH = 200

/**
 * Escapes all characters of a text except visible ASCII, so that a stranger's text cannot look like a log
 * line. Truncates the result to 200 characters. A lone surrogate is escaped as U+FFFD.
 */
export const printable = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\x21-\x7e]/gu, character => encodeURIComponent(character))
    .slice(0, MAX_LENGTH)

/**
 * Charges the log line of a refused request. Returns false when the request's network or organization has
 * had too many refusals, so that strangers cannot fill the disk.
 */
export const mayReport = (
  context: Core,
  { ip_address }: Call,
  client: { organization_id: OrganizationId } | undefined,
): boolean => {
  try {
    charge(context, { ip_address, organization_id: client?.organization_id, kind: 'refusal' })
    return true
  } catch {
    return false
  }
}
