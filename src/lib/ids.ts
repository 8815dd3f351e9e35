/**
 * Ids: a type prefix and a UUID version 7 (RFC 9562 section 5.7), so that ids sort by creation.
 * https://www.rfc-editor.org/rfc/rfc9562#section-5.7
 */
export type UserId = `usr_${string}`
export type OrganizationId = `org_${string}`
export type RoleId = `role_${string}`
export type GroupId = `grp_${string}`
export type SessionId = `sess_${string}`
export type EventId = `evt_${string}`
export type KeyId = `key_${string}`
export type LoginId = `login_${string}`
export type IdentityProviderId = `idp_${string}`
export type FactorId = `fac_${string}`

export const prefixes = ['usr', 'org', 'role', 'grp', 'sess', 'evt', 'key', 'login', 'idp', 'fac'] as const
export type Prefix = (typeof prefixes)[number]

export const DEFAULT_ORGANIZATION: OrganizationId = 'org_default'

let latest = 0

/** A new id that sorts after every id made before it in this process, even when the clock (`now`, ms) steps back. */
export const newId = <P extends Prefix>(prefix: P, now: number): `${P}_${string}` => {
  latest = Math.max(latest, now)
  return `${prefix}_${Bun.randomUUIDv7('hex', latest)}`
}

/** The id without its type prefix: what tokens carry as `sub`, `org_id` and `sid`. */
export const bareId = (id: string): string => id.slice(id.indexOf('_') + 1)

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isUuid = (text: string): boolean => uuid.test(text)

/** Whether a name chosen by a person could be read as one of our ids: such slugs and client ids are refused. */
export const looksLikeId = (text: string): boolean =>
  isUuid(text) || prefixes.some(prefix => text.startsWith(`${prefix}_`))
