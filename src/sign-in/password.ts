import { nobody, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { hashPassword, needsRehash, verifyPassword } from '#src/directory/users/password.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { PageError } from '#src/http/page-boundary.ts'
import { AppError } from '#src/lib/app-error.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Origin } from '#src/lib/origin.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import type { Queries, Store, Transaction } from '#src/storage/store.ts'
import { findThrottle, removeThrottle, replacePasswordHash, upsertThrottle } from './store.ts'
import {
  checkThrottle,
  countFailure,
  type Limit,
  networkOf,
  passwordsFrom,
  ROW,
  type ThrottleKey,
} from './throttle.ts'

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
const KNOWN_FOR = 30 * DAY
const KNOWN = { ...ROW, forget_after: KNOWN_FOR } satisfies Limit

/**
 * Looks a person up by name and password. Unknown, disabled and foreign users and wrong passwords are one refusal, with the
 * same hash computed and the same rows written; the audit log alone knows the reason.
 */
export const provePassword = async (context: Context, credentials: Credentials): Promise<Proof> => {
  const { organization_id, password, origin } = credentials
  const name = accountName(credentials)
  const { account, wait, failures, user } = await context.store.read(async q => {
    const account = await accountKey(context, q, name, origin)
    const keys = [account, passwordsFrom(origin.ip_address)]
    return {
      account,
      wait: await checkThrottle(context, q, keys),
      failures: (await findThrottle(q, account.key))?.failures ?? 0,
      user: await findUserForLogin(q, organization_id, credentials.identifier),
    }
  })
  if (wait > 0) return { refusal: waitFor('throttled', wait) }
  const leave = enter(context.store, account.key, failures < ROW.after ? ABREAST : 1)
  if (!leave) return { refusal: waitFor('throttled', ROW.first_wait) }
  try {
    const isRight = await verifyPassword(context, user?.password_hash, password)
    if (!user || !isRight || !user.enabled) return await refuse(context, credentials, user, account, isRight)
    await welcome(context, name, user, credentials)
    return { user }
  } catch (error) {
    if (error instanceof AppError && error.code === 'temporarily_unavailable')
      return { refusal: waitFor('busy', BUSY) }
    throw error
  } finally {
    leave()
  }
}

/**
 * For the write that builds on a proof: the user is still enabled and has the password that was proven, or 400 page `expired`.
 * A reset that came in between would otherwise be outlived by a login with the old password.
 */
export const confirmProof = async (tx: Transaction, proven: UserRow): Promise<void> => {
  const user = await findUser(tx, proven.organization_id, proven.id)
  if (!user?.enabled || user.password_changed_at !== proven.password_changed_at)
    throw new PageError('expired', 400)
}

/** Names one account, whether it exists or not; hashed, for it may be a password typed into the wrong field. */
export const accountName = ({
  organization_id,
  identifier,
}: Pick<Credentials, 'organization_id' | 'identifier'>): string =>
  hashSecret(`${organization_id} ${foldIdentifier(identifier)}`)

const knownKey = (name: string, { ip_address }: Origin): string => `known:${name}:${networkOf(ip_address)}`

/**
 * Where the person has signed in before, failures are counted apart: strangers who try the account again and again from
 * elsewhere cannot keep its owner out.
 */
const accountKey = async (
  context: Context,
  q: Queries,
  name: string,
  origin: Origin,
): Promise<ThrottleKey> => {
  const known = await findThrottle(q, knownKey(name, origin))
  return known && known.expires_at > context.clock.now()
    ? { key: known.key, limit: KNOWN }
    : { key: `account:${name}`, limit: ROW }
}

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
  account: ThrottleKey,
  isRight: boolean,
): Promise<Proof> =>
  context.store.write(async tx => {
    const [attempt_count] = await countFailure(context, tx, [account, passwordsFrom(origin.ip_address)])
    await record(context, tx, {
      type: 'user.login_failed',
      actor: nobody,
      target_id: user?.id ?? '',
      target_type: 'user',
      organization_id,
      origin,
      metadata: {
        username_attempted: identifier.slice(0, MAX_IDENTIFIER).toWellFormed(),
        failure_reason: !user ? 'unknown_user' : isRight ? 'user_disabled' : 'wrong_password',
        attempt_count,
      },
      subject_id: user?.id ?? null,
    })
    return { refusal: WRONG }
  })

/** Ends the row of failures, remembers the address, and hashes anew when the settings have risen since. */
const welcome = async (
  context: Context,
  name: string,
  { id, password_hash }: UserRow,
  { password, origin }: Credentials,
): Promise<void> => {
  const now = context.clock.now()
  const old = password_hash ?? ''
  const fresh = needsRehash(context, old) ? await hashPassword(context, password) : undefined
  await context.store.write(async tx => {
    await removeThrottle(tx, `account:${name}`)
    await upsertThrottle(tx, {
      key: knownKey(name, origin),
      failures: 0,
      window_started_at: now,
      blocked_until: 0,
      expires_at: now + KNOWN_FOR,
    })
    if (fresh) await replacePasswordHash(tx, id, old, fresh)
  })
}
