import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { setLastLogin } from '#src/directory/users/store.ts'
import { setCookie } from '#src/http/cookies.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { LoginId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'
import { isUnrecorded } from '#src/sessions/login-sessions-store.ts'
import { type Login, moveLogins, raiseLogin, setRecorded } from '#src/sessions/login-store.ts'
import { listLogins, startLogin } from '#src/sessions/logins.ts'
import type { Transaction } from '#src/storage/store.ts'

/** acr (protocol/oidc/acr.ts) and amr (https://www.rfc-editor.org/rfc/rfc8176) of a password login. */
export const PASSWORD = { acr: '1', amr: ['pwd'] }

/**
 * Lifetime of a login in milliseconds when the organization sets no `session_ttl`. A forgotten login on a
 * shared computer thus ends within a day.
 */
const LIFETIME = DAY

/** A login that was started or raised in this write, with its cookie. */
export interface NewLogin {
  login_id: LoginId
  login_hash: SecretHash
  /** The Set-Cookie line of the login cookie. */
  cookie: string
}

/**
 * Starts a login in this browser. Logins of other users in the browser continue. The cookie gets a new value
 * and the old value becomes invalid, which prevents session fixation (O-30).
 */
export const signIn = async (
  context: Context,
  tx: Transaction,
  login: {
    user: { id: UserId }
    organization: Organization
    acr: string
    amr: string[]
    client_info: ClientInfo
    /**
     * Time of the authentication in milliseconds. Default: now. The value 0 means that the time is unknown.
     */
    auth_time?: number | undefined
    /**
     * Start of the login in milliseconds. Default: now. A login that replaces another login, for example
     * after a change of the password, gets the start of the replaced login.
     */
    signed_in_at?: number | undefined
    /**
     * Time (ms) by which the login must end: the provider's `SessionNotOnOrAfter`, or the end of the replaced
     * login.
     */
    until?: number | undefined
    /** Hash of the login cookie in the request. */
    login_hash: SecretHash | undefined
  },
): Promise<NewLogin> => {
  const { user, organization, until = Number.POSITIVE_INFINITY, login_hash: old_hash, ...proven } = login
  const now = context.clock.now()
  const value = newSecret()
  const login_hash = hashSecret(value)
  if (old_hash) await moveLogins(tx, old_hash, login_hash)
  // A login that replaces another login, for example after a change of the password, does not count as a new
  // login of the user.
  if (proven.signed_in_at === undefined) await setLastLogin(tx, user.id, now)
  const login_id = await startLogin(context, tx, {
    browser_hash: login_hash,
    user_id: user.id,
    organization_id: organization.id,
    ...proven,
    expires_at: Math.min(until, now + (settingsOf(organization).session_ttl ?? LIFETIME)),
  })
  return { login_id, login_hash, cookie: await cookieFor(context, tx, value) }
}

/**
 * Adds a further factor to an existing login and raises the level of the login. Returns undefined when the
 * login has ended. The cookie gets a new value, like at the start of a login. `auth_time` stays the time of
 * the first factor.
 */
export const stepUp = async (
  context: Context,
  tx: Transaction,
  login: { login_id: LoginId; login_hash: SecretHash; acr: string; amr: string[] },
): Promise<NewLogin | undefined> => {
  const { login_id, acr, amr } = login
  const value = newSecret()
  const login_hash = hashSecret(value)
  await moveLogins(tx, login.login_hash, login_hash)
  if (!(await raiseLogin(tx, { login_id, browser_hash: login_hash, acr, amr }))) return undefined
  return { login_id, login_hash, cookie: await cookieFor(context, tx, value) }
}

/** Returns the Set-Cookie line of a login cookie. The cookie lasts as long as the login that expires last. */
const cookieFor = async (context: Context, tx: Transaction, value: Secret): Promise<string> => {
  const logins = await listLogins(context, tx, hashSecret(value))
  const latest = Math.max(...logins.map(({ expires_at }) => expires_at))
  const seconds = (latest - context.clock.now()) / SECOND
  return setCookie(context.config, context.cookies.login, value, seconds)
}

type Recorded = Pick<Login, 'id' | 'user_id' | 'email' | 'organization_id' | 'amr'>

/**
 * Records the event of a login that leads to the account pages. For a login at a client, another function
 * records the event when the client exchanges the code, so that the event contains the session.
 */
export const recordLogin = async (
  context: Context,
  tx: Transaction,
  { id, user_id, email, organization_id, amr }: Recorded,
  client_info: ClientInfo,
): Promise<void> => {
  const user = { id: user_id, email, organization_id }
  await setRecorded(tx, [id], context.clock.now())
  const metadata = { client_id: '', grant_type: '', session_id: '', amr }
  await recordUser(context, tx, { actor: { id: user_id, email }, client_info }, 'user.login', user, metadata)
}

/**
 * Called when a user opens the account pages. Records the login if no event shows it yet. Otherwise a program
 * with a stolen password could read the account without a trace: it could sign in to a client whose code is
 * never exchanged.
 */
export const recordUnseen = async (
  context: Context,
  login: Recorded,
  client_info: ClientInfo,
): Promise<void> => {
  const { store } = context
  if (!(await store.read(q => isUnrecorded(q, login.id)))) return
  await store.write(async tx => {
    if (await isUnrecorded(tx, login.id)) await recordLogin(context, tx, login, client_info)
  })
}
