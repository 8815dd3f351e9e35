import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { type LoginId, newId, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findLogins, insertLogin, type Login, renewLogin } from './login-store.ts'

interface NewLogin {
  browser_hash: SecretHash
  user_id: UserId
  organization_id: OrganizationId
  acr: string
  amr: string[]
  client_info: ClientInfo
  /** Time of the authentication in milliseconds. Default: now. The value 0 means that the time is unknown. */
  auth_time?: number | undefined
  /**
   * Start of the login in milliseconds. Default: now. A login that replaces another login gets the start of
   * the replaced login.
   */
  signed_in_at?: number | undefined
  expires_at: number
}

/**
 * Starts a login of an authenticated user in a browser. If the user already has a login in this browser,
 * renews this login and keeps its id. A later logout thus finds the sessions from before the renewal too.
 */
export const startLogin = async (
  context: Core,
  tx: Transaction,
  { client_info, auth_time, signed_in_at, ...proven }: NewLogin,
): Promise<LoginId> => {
  const now = context.clock.now()
  const login = {
    ...proven,
    id: newId('login', now),
    auth_time: auth_time ?? now,
    signed_in_at: signed_in_at ?? now,
    // A login that replaces another login, for example after a change of the password, needs no event,
    // because the user has not signed in again.
    recorded_at: signed_in_at === undefined ? null : now,
    ip_address: client_info.ip_address,
    user_agent: client_info.user_agent,
    created_at: now,
  }
  const renewed = await renewLogin(tx, login)
  if (renewed) return renewed
  await insertLogin(tx, login)
  return login.id
}

/** Returns the unexpired logins of a browser, the latest first. */
export const listLogins = (context: Core, q: Queries, browser_hash: SecretHash): Promise<Login[]> =>
  findLogins(q, browser_hash, context.clock.now())
