/**
 * An id is a type prefix and a UUID version 7, so ids of one type sort by the time of their creation.
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
export type ApiId = `api_${string}`
export type InitialAccessTokenId = `iat_${string}`
export type InvitationId = `inv_${string}`
export type RememberedBrowserId = `brw_${string}`
export type WebhookId = `hook_${string}`

const idPrefixes = [
  'usr',
  'org',
  'role',
  'grp',
  'sess',
  'evt',
  'key',
  'login',
  'idp',
  'fac',
  'api',
  'iat',
  'inv',
  'brw',
  'hook',
] as const
export type IdPrefix = (typeof idPrefixes)[number]

export const DEFAULT_ORGANIZATION: OrganizationId = 'org_default'

/** An id that no organization has. A list that is filtered by this id is empty. */
export const NO_ORGANIZATION: OrganizationId = 'org_'

/** Default of the setting `admin_client_id`. */
export const DEFAULT_ADMIN_CLIENT = 'gatehouse-admin'

/** `client_id` and name of the console. */
export const CONSOLE_CLIENT = 'gatehouse-console'
export const CONSOLE_NAME = 'Gatehouse console'

let latest = 0
let count = 0

/**
 * Returns an id that sorts after all earlier ids of this process, even when the clock (`now`, ms) steps back.
 * Ids of the same millisecond are numbered in `rand_a` (https://www.rfc-editor.org/rfc/rfc9562#section-6.2,
 * method 1). `Bun.randomUUIDv7` is not used, because it restarts its counter whenever it gets a different
 * time, such as the time of an event.
 */
export const newId = <P extends IdPrefix>(prefix: P, now: number): `${P}_${string}` => {
  count = now > latest ? 0 : count + 1
  latest = Math.max(latest, now)
  if (count > 0xfff) [latest, count] = [latest + 1, 0]
  const time = latest.toString(16).padStart(12, '0')
  const counted = count.toString(16).padStart(3, '0')
  return `${prefix}_${time.slice(0, 8)}-${time.slice(8)}-7${counted}-${crypto.randomUUID().slice(19)}`
}

/** Returns the id without its prefix. Tokens contain this form in `sub`, `org_id` and `sid`. */
export const bareId = (id: string): string => id.slice(id.indexOf('_') + 1)

/**
 * Returns the 16 bytes of the UUID in an id. The caller must know that the id contains a UUID: other text
 * gives a `SyntaxError` or fewer bytes.
 */
export const uuidBytes = (id: string): Uint8Array => {
  const uuid = bareId(id)
  const groups = uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(14, 18) + uuid.slice(19, 23)
  return Uint8Array.fromHex(groups + uuid.slice(24))
}

/** Returns 16 bytes as a UUID in lower case. */
export const uuidOf = (bytes: Buffer): string => {
  const hex = bytes.toString('hex')
  const [a, b, c, d] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return `${a}-${b}-${c}-${d}-${hex.slice(20)}`
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True for a UUID in its usual form of 36 characters, in upper or lower case. */
export const isUuid = (text: string): boolean => uuid.test(text)

/**
 * True when a slug or client id that a person chose looks like a generated id. Such names are refused. A
 * lookup by id or slug could otherwise find the wrong object, and the `sub` of a client could equal the `sub`
 * of a user.
 */
export const looksLikeId = (text: string): boolean =>
  isUuid(text) || idPrefixes.some(prefix => text.startsWith(`${prefix}_`))
