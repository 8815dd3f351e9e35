import type { Context } from '#src/context.ts'
import { type Organization, settingsOf } from '#src/directory/organizations/store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { cookieNames, setCookie } from '#src/http/cookies.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { LoginId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'
import { moveLogins, raiseLogin } from '#src/sessions/login-store.ts'
import { listLogins, startLogin } from '#src/sessions/logins.ts'
import type { Transaction } from '#src/storage/store.ts'

/** How somebody proved who they are: acr as in protocol/oidc/acr.ts, amr as in RFC 8176. */
export const PASSWORD = { acr: '1', amr: ['pwd'] }

export interface NewLogin {
  login_id: LoginId
  login_hash: SecretHash
  /** Its Set-Cookie line. */
  cookie: string
}

/**
 * Starts a login in this browser, beside the others it has. The cookie gets a fresh value and the old one is dead, so that
 * a value planted or copied before means nothing (O-30).
 */
export const logIn = async (
  context: Context,
  tx: Transaction,
  login: {
    user: { id: UserId }
    organization: Organization
    acr: string
    amr: string[]
    client_info: ClientInfo
    /** When the user proved who they are, in milliseconds, if not just now; 0 when that is not known. */
    auth_time?: number | undefined
    /** When the login began, in milliseconds, of one that goes on as it was. */
    signed_in_at?: number | undefined
    /** When it ends at the latest, in milliseconds. */
    until?: number | undefined
    /** Of the login cookie that the browser sent. */
    login_hash: SecretHash | undefined
  },
): Promise<NewLogin> => {
  const { user, organization, until = Number.POSITIVE_INFINITY, login_hash: old_hash, ...proven } = login
  const now = context.clock.now()
  const value = newSecret()
  const login_hash = hashSecret(value)
  if (old_hash) await moveLogins(tx, old_hash, login_hash)
  const login_id = await startLogin(context, tx, {
    browser_hash: login_hash,
    user_id: user.id,
    organization_id: organization.id,
    ...proven,
    expires_at: Math.min(until, now + (settingsOf(organization).session_ttl ?? DAY)),
  })
  return { login_id, login_hash, cookie: await cookieFor(context, tx, value) }
}

/**
 * A login that is there gets stronger by a further factor. Its cookie changes as at a login; `auth_time` tells of the
 * first factor and stays.
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

/** Lasts as long as the longest login under it. */
const cookieFor = async (context: Context, tx: Transaction, value: Secret): Promise<string> => {
  const logins = await listLogins(context, tx, hashSecret(value))
  const latest = Math.max(...logins.map(({ expires_at }) => expires_at))
  const seconds = (latest - context.clock.now()) / SECOND
  return setCookie(context.config, cookieNames(context.config).login, value, seconds)
}

/** A login that no client asked for, which ends on /account. Those of clients are recorded by the code exchange. */
export const recordLogin = (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'email' | 'organization_id'>,
  client_info: ClientInfo,
): Promise<void> =>
  recordUser(context, tx, { actor: { id: user.id, email: user.email }, client_info }, 'user.login', user, {
    client_id: '',
    grant_type: '',
    session_id: '',
  })
