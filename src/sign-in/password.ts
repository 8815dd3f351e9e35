import type { Context } from '#src/context.ts'
import { hashPassword, needsRehash, verifyPassword } from '#src/directory/users/password.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { Origin } from '#src/lib/client-info.ts'
import { SECOND } from '#src/lib/duration.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/boundary.ts'
import type { Queries, Store, Transaction } from '#src/storage/store.ts'
import { failLogin } from './failed-login.ts'
import { budgetsOf, settleBudgets } from './login-throttle.ts'
import { findThrottle, replacePasswordHash } from './store.ts'
import { checkThrottle, passwordsFrom, ROW, type ThrottleKey } from './throttle.ts'

/** What a person typed into a login form. */
export interface Credentials {
  organization_id: OrganizationId
  /** Username or e-mail address. */
  identifier: string
  password: string
  origin: Origin
}

/** How a page tells a refusal: the error's code, the wait in whole seconds, the HTTP status and its headers. */
export interface Refusal {
  code: 'invalid_credentials' | 'throttled' | 'busy'
  seconds: number
  status: 401 | 429 | 503
  headers: Record<string, string>
}

export type Proof = { user: UserRow; refusal?: never } | { user?: never; refusal: Refusal }

const WRONG: Refusal = { code: 'invalid_credentials', seconds: 0, status: 401, headers: {} }

/** `wait` in milliseconds. */
export const waitFor = (code: 'throttled' | 'busy', wait: number): Refusal => {
  const seconds = Math.max(1, Math.ceil(wait / SECOND))
  const headers = { 'retry-after': String(seconds) }
  return { code, seconds, status: code === 'busy' ? 503 : 429, headers }
}

/** Longer than any e-mail address: nobody has such a name. What is recorded of it is cut here. */
export const MAX_IDENTIFIER = 320
const BUSY = 2 * SECOND
/** Attempts on one account at the same moment, until it has to wait after each. */
const ABREAST = 20

/**
 * Looks a person up by name and password. Unknown, disabled and foreign users and wrong passwords are one refusal, with
 * the same hash computed and the same rows counted; the audit log alone knows the reason. A person whose failures under
 * all their names are too many is one more such: nothing is looked at, and nothing tells.
 */
export const provePassword = async (context: Context, credentials: Credentials): Promise<Proof> => {
  const { organization_id, password, origin } = credentials
  const name = accountName(credentials)
  const { budgets, wait, wait_unsaid, room, room_unsaid, user } = await context.store.read(async q => {
    const user = await findUserForLogin(q, organization_id, credentials.identifier)
    const budgets = await budgetsOf(context, q, { name, user }, origin)
    return {
      user,
      budgets,
      wait: await checkThrottle(context, q, [budgets.name, passwordsFrom(origin.ip_address)]),
      wait_unsaid: await checkThrottle(context, q, [budgets.person]),
      room: await roomFor(q, budgets.name),
      room_unsaid: await roomFor(q, budgets.person),
    }
  })
  if (wait > 0) return { refusal: waitFor('throttled', wait) }
  const leave = enter(context.store, budgets.name.key, room)
  if (!leave) return { refusal: waitFor('throttled', ROW.first_wait) }
  const leaveUnsaid = enter(context.store, budgets.person.key, room_unsaid)
  const isHeld = wait_unsaid > 0 || !leaveUnsaid
  try {
    const isRight = await verifyPassword(context, user?.password_hash, password)
    const failure = isHeld ? 'throttled' : failureOf(user, isRight)
    // What was not looked at is no failure of the person: strangers would keep the owner out by it.
    const keys = isHeld ? [budgets.name] : [budgets.name, budgets.person]
    if (failure || !user) return await refuse(context, credentials, user, keys, failure)
    await welcome(context, { name, user }, credentials)
    return { user }
  } catch (error) {
    if (error instanceof AppError && error.code === 'temporarily_unavailable')
      return { refusal: waitFor('busy', BUSY) }
    throw error
  } finally {
    leave()
    leaveUnsaid?.()
  }
}

const failureOf = (user: UserRow | undefined, isRight: boolean): string | undefined => {
  if (!user) return 'unknown_user'
  if (!isRight) return 'wrong_password'
  return user.enabled ? undefined : 'user_disabled'
}

/**
 * For the write that builds on a proof: the user is still enabled and has the password that was proven, or 400 page `expired`.
 * A reset that came in between would otherwise be outlived by a login with the old password.
 */
export const confirmProof = async (
  tx: Transaction,
  proven: Pick<UserRow, 'id' | 'organization_id' | 'password_changed_at'>,
): Promise<UserRow> => {
  const user = await findUser(tx, proven.organization_id, proven.id)
  if (!user?.enabled || user.password_changed_at !== proven.password_changed_at)
    throw new PageError('expired', 400)
  return user
}

/** Names one account, whether it exists or not; hashed, for it may be a password typed into the wrong field. */
export const accountName = ({
  organization_id,
  identifier,
}: Pick<Credentials, 'organization_id' | 'identifier'>): string =>
  hashSecret(`${organization_id} ${foldIdentifier(identifier)}`)

/** How many attempts may be looked at side by side. */
const roomFor = async (q: Queries, { key }: ThrottleKey): Promise<number> =>
  ((await findThrottle(q, key))?.failures ?? 0) < ROW.after ? ABREAST : 1

const underway = new WeakMap<Store, Map<string, number>>()

/** Attempts side by side outrun the count of failures: so there are not many of them. Undefined: no room. */
const enter = (store: Store, key: string, room: number): (() => void) | undefined => {
  const counts = underway.get(store) ?? new Map<string, number>()
  underway.set(store, counts)
  const count = counts.get(key) ?? 0
  if (count >= room) return undefined
  counts.set(key, count + 1)
  return () => {
    const left = (counts.get(key) ?? 1) - 1
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }
}

const refuse = (
  context: Context,
  { organization_id, identifier, origin }: Credentials,
  user: UserRow | undefined,
  keys: ThrottleKey[],
  failure_reason: string | undefined,
): Promise<Proof> =>
  context.store.write(async tx => {
    await failLogin(context, tx, [...keys, passwordsFrom(origin.ip_address)], {
      organization_id,
      user_id: user?.id,
      username_attempted: identifier.slice(0, MAX_IDENTIFIER).toWellFormed(),
      failure_reason,
      origin,
    })
    return { refusal: WRONG }
  })

/** Ends the rows of failures, remembers the network, and hashes anew when the settings have risen since. */
const welcome = async (
  context: Context,
  counted: { name: string; user: UserRow },
  { password, origin }: Credentials,
): Promise<void> => {
  const { id, password_hash } = counted.user
  const old = password_hash ?? ''
  const fresh = needsRehash(context, old) ? await hashPassword(context, password) : undefined
  await context.store.write(async tx => {
    await settleBudgets(context, tx, counted, origin)
    if (fresh) await replacePasswordHash(tx, id, old, fresh)
  })
}
