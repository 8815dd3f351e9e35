import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { type Organization, settingsOf } from '#src/directory/organizations/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { cookieNames, setCookie } from '#src/http/cookies.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { LoginId, UserId } from '#src/lib/ids.ts'
import type { Origin } from '#src/lib/origin.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { listLogins, moveLogins, startLogin } from '#src/sessions/logins.ts'
import type { Transaction } from '#src/storage/store.ts'

/** How somebody proved who they are: one factor is acr 1, two are acr 2; amr as in RFC 8176. */
export const PASSWORD = { acr: '1', amr: ['pwd'] }

interface NewLogin {
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
    origin: Origin
    /** Of the login cookie that the browser sent. */
    login_hash: SecretHash | undefined
  },
): Promise<NewLogin> => {
  const { user, organization, acr, amr, origin } = login
  const now = context.clock.now()
  const value = newSecret()
  const login_hash = hashSecret(value)
  if (login.login_hash) await moveLogins(tx, login.login_hash, login_hash)
  const login_id = await startLogin(context, tx, {
    browser_hash: login_hash,
    user_id: user.id,
    organization_id: organization.id,
    acr,
    amr,
    origin,
    expires_at: now + (settingsOf(organization).session_ttl ?? DAY),
  })
  const latest = Math.max(...(await listLogins(context, tx, login_hash)).map(({ expires_at }) => expires_at))
  const cookie = setCookie(context.config, cookieNames(context.config).login, value, (latest - now) / SECOND)
  return { login_id, login_hash, cookie }
}

/** A login that no client asked for, which ends on /account. Those of clients are recorded by the code exchange. */
export const recordLogin = (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'email' | 'organization_id'>,
  origin: Origin,
): Promise<void> =>
  record(context, tx, {
    type: 'user.login',
    actor: { id: user.id, email: user.email },
    target_id: user.id,
    target_type: 'user',
    organization_id: user.organization_id,
    origin,
    metadata: { client_id: '', grant_type: '', session_id: '' },
    subject_id: user.id,
  })
