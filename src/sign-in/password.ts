import type { Context } from '#src/context.ts'
import { findCosts } from '#src/directory/users/hash-costs.ts'
import { hashPassword, needsRehash, verifyPassword } from '#src/directory/users/password.ts'
import { findUser, findUserForLogin, replacePasswordHash, type UserRow } from '#src/directory/users/store.ts'
import { networkOf } from '#src/http/network.ts'
import { type ChargeKind, charge } from '#src/http/rate-limits.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { HashLane } from '#src/lib/fair-queue.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { shareOf } from '#src/lib/share.ts'
import { PageError } from '#src/pages/error-page.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { failLogin } from './failed-login.ts'
import { type Budget, budgetsOf, countSuccess } from './login-throttle.ts'
import { checkThrottle, passwordsFrom, type ThrottleKey } from './throttle.ts'

/** An attempt to sign in under a name. */
export interface LoginAttempt {
  organization_id: OrganizationId
  /** Username or e-mail address. */
  identifier: string
  client_info: ClientInfo
}

/** The input of a login form. */
export interface Credentials extends LoginAttempt {
  password: string
}

/**
 * Answer to a refused proof: the error code and the wait in whole seconds for the page, and the HTTP status
 * and headers.
 */
export interface ProofRefusal {
  code: 'invalid_credentials' | 'throttled' | 'busy'
  seconds: number
  status: 401 | 429 | 503
  headers: Record<string, string>
}

export type PasswordProof = { user: UserRow; refusal?: never } | { user?: never; refusal: ProofRefusal }

export const WRONG: ProofRefusal = { code: 'invalid_credentials', seconds: 0, status: 401, headers: {} }

/**
 * Returns the refusal for a wait in milliseconds. A throttle reports whole minutes, because exact seconds
 * would show when other people have tried to sign in.
 */
export const waitFor = (code: 'throttled' | 'busy', wait: number): ProofRefusal => {
  const step = code === 'busy' ? 1 : MINUTE / SECOND
  const seconds = Math.max(1, Math.ceil(wait / SECOND / step)) * step
  const headers = { 'retry-after': String(seconds) }
  return { code, seconds, status: code === 'busy' ? 503 : 429, headers }
}

/**
 * Maximum length in characters of a name that a user has typed. A longer name is cut before it is stored, for
 * example in the audit log. The longest e-mail address has 64 characters, an @ and 255 characters
 * (https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1).
 */
export const MAX_IDENTIFIER = 320
/**
 * Wait in milliseconds when all seats of the hash queue are taken. Seats become free within a second or two.
 */
const BUSY = 2 * SECOND

/**
 * Authenticates a user by name and password. Unknown users, disabled users, users of other organizations and
 * wrong passwords get the same refusal. In each case the server computes the same hashes and raises the same
 * counters. Only the audit log has the reason. The answer thus does not reveal who has an account. Failures
 * are counted for the typed name, and over all names of the user. If only the second count is too high, even
 * the correct password gets this refusal, because another answer would confirm the guess.
 */
export const provePassword = (context: Context, credentials: Credentials): Promise<PasswordProof> =>
  proveByName(context, credentials, {
    work: 'hash',
    check: async (user, isKnown) => {
      const costs = await findCosts(context.store, '')
      const lane = laneOf(credentials, isKnown)
      const isRight = await verifyPassword(context, user?.password_hash, credentials.password, lane, costs)
      return isRight ? undefined : 'wrong_password'
    },
    passed: (user, isKnown) => rehash(context, user, credentials, laneOf(credentials, isKnown)),
  })

/** A way to authenticate a user who has typed a name, such as a password. */
interface Means {
  work: ChargeKind
  /**
   * Returns the reason for which the proof fails. Returns undefined when the proof succeeds. The function
   * must do the same work for existing, unknown and throttled users.
   */
  check(user: UserRow | undefined, isKnown: boolean): Promise<string | undefined>
  /**
   * Called after a success. Returns a change, such as a new hash, that is made in the write that counts the
   * success. Returns undefined when there is no such change.
   */
  passed?(user: UserRow, isKnown: boolean): Promise<((tx: Transaction) => Promise<unknown>) | undefined>
}

/**
 * Authenticates a user by name, within the budgets of attempts. Every failed check gets the same refusal and
 * raises the same counters, whether the user exists or not. Only the audit log has the reason.
 */
export const proveByName = async (
  context: Context,
  attempt: LoginAttempt,
  means: Means,
): Promise<PasswordProof> => {
  const { organization_id, client_info } = attempt
  const name = accountName(attempt)
  const network = passwordsFrom(client_info.ip_address)
  const findBudgets = (q: Queries, user: UserRow | undefined) =>
    budgetsOf(context, q, { name, user }, client_info)
  const { budgets, wait, user } = await context.store.read(async q => {
    const user = await findUserForLogin(q, organization_id, attempt.identifier)
    const budgets = await findBudgets(q, user)
    const wait = await checkThrottle(context, q, [network])
    return { user, budgets, wait: budgets.is_known ? 0 : wait }
  })
  const nameSlot = wait > 0 ? undefined : acquireSlot(context, budgets.name)
  if (!nameSlot) return { refusal: waitFor('throttled', MINUTE) }
  const heldUserSlot = budgets.user.length === 0 ? FREE : acquireSlot(context, budgets.user)
  try {
    // The budgets are read again, because attempts that have ended since the first read have freed their
    // slots and counted their failures.
    const counted = await context.store.read(q => findBudgets(q, user))
    if (!isWithin(context, counted.name, nameSlot)) return { refusal: waitFor('throttled', MINUTE) }
    const userSlot = heldUserSlot && isWithin(context, counted.user, heldUserSlot) ? heldUserSlot : undefined
    const { is_known: isKnown } = budgets
    const { ip_address, device_hash } = client_info
    const device = isKnown ? device_hash : undefined
    charge(context, { ip_address, organization_id, kind: means.work, device })
    const wrong = await means.check(user, isKnown)
    const failure = userSlot ? failureOf(user, wrong) : 'throttled'
    // If the user is throttled, the attempt counts only against the name and the network. Otherwise an
    // attacker could lock the owner out.
    const failed = [...nameSlot.failed, ...(userSlot?.failed ?? []), network]
    if (failure || !user) return await recordFailure(context, attempt, user, failed, failure)
    const also = await means.passed?.(user, isKnown)
    const passed = [...nameSlot.passed, ...(userSlot?.passed ?? [])]
    await context.store.write(async tx => {
      await countSuccess(context, tx, { name, user }, passed, client_info)
      await also?.(tx)
    })
    return { user }
  } catch (error) {
    if (error instanceof AppError && error.code === 'temporarily_unavailable')
      return { refusal: waitFor('busy', BUSY) }
    if (error instanceof AppError && error.code === 'rate_limited')
      return { refusal: waitFor('throttled', Number(error.headers['retry-after']) * SECOND) }
    throw error
  } finally {
    nameSlot.release()
    heldUserSlot?.release()
  }
}

/**
 * Returns the lane of the hash queue for an attempt. Known browsers have their own lane, so that strangers
 * cannot take all seats of an organization.
 */
const laneOf = ({ organization_id, client_info }: LoginAttempt, isKnown: boolean): HashLane =>
  isKnown
    ? { work: 'login', organization: `${organization_id}:known` }
    : { work: 'login', organization: organization_id, network: networkOf(client_info.ip_address, 48) }

const failureOf = (user: UserRow | undefined, wrong: string | undefined): string | undefined => {
  if (!user) return 'unknown_user'
  return wrong ?? (user.enabled ? undefined : 'user_disabled')
}

/**
 * Confirms three facts inside the write: the user is still enabled, the user still has the proven password,
 * and no other request has ended the stored proofs of the user (`endProofs`). Without this check, a login
 * with the old password could survive a concurrent reset.
 *
 * @throws PageError 400 `expired`
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

/**
 * Returns the name under which the throttle counts attempts on an account. The account need not exist. The
 * typed name is hashed, because some users type their password into the field for the name.
 */
export const accountName = ({
  organization_id,
  identifier,
}: Pick<LoginAttempt, 'organization_id' | 'identifier'>): string =>
  hashSecret(`${organization_id} ${foldIdentifier(identifier)}`)

interface Slot extends Pick<Budget, 'key' | 'failed' | 'passed'> {
  /** Number of concurrent attempts just after the slot was acquired, including the slot's own attempt. */
  running: number
  release(): void
}

const FREE: Slot = { key: '', running: 0, failed: [], passed: [], release: () => {} }

/** Returns whether a budget allows `running` concurrent attempts. */
const allows = ({ config }: Context, { wait, concurrent }: Budget, running: number): boolean =>
  wait === 0 && running <= shareOf(concurrent, config.workers)

/**
 * Returns whether `budgets` still allow the slot's attempt. The budgets were read after the slot was
 * acquired. `running` is the number at the moment when the slot was acquired. Attempts that have failed since
 * then are still included, because the read may have missed their failures.
 */
const isWithin = (context: Context, budgets: readonly Budget[], { key, running }: Slot): boolean => {
  const budget = budgets.find(budget => budget.key === key)
  return key === FREE.key || (budget !== undefined && allows(context, budget, running))
}

/**
 * Acquires a slot in the first free budget. Returns undefined when no budget is free. Each budget has few
 * slots, because each slot allows one more guess: concurrent attempts start before earlier failures are
 * counted.
 */
const acquireSlot = (context: Context, budgets: readonly Budget[]): Slot | undefined => {
  const { attempts: counts } = context
  const budget = budgets.find(budget => allows(context, budget, (counts.get(budget.key) ?? 0) + 1))
  if (!budget) return undefined
  const { key, failed, passed } = budget
  const running = (counts.get(key) ?? 0) + 1
  counts.set(key, running)
  const release = () => {
    const left = (counts.get(key) ?? 1) - 1
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }
  return { key, running, failed, passed, release }
}

const recordFailure = (
  context: Context,
  { organization_id, identifier, client_info }: LoginAttempt,
  user: UserRow | undefined,
  failed: ThrottleKey[],
  failure_reason: string | undefined,
): Promise<PasswordProof> =>
  context.store.write(async tx => {
    await failLogin(context, tx, failed, {
      organization_id,
      user_id: user?.id,
      username_attempted: identifier.slice(0, MAX_IDENTIFIER).toWellFormed(),
      failure_reason,
      client_info,
    })
    return { refusal: WRONG }
  })

/** Hashes the password again if {@link needsRehash} says so. Returns the change that stores the new hash. */
const rehash = async (
  context: Context,
  { id, password_hash }: UserRow,
  { password }: Credentials,
  lane: HashLane,
) => {
  const old = password_hash ?? ''
  if (!needsRehash(context, old)) return undefined
  const fresh = await hashPassword(context, password, lane)
  return (tx: Transaction) => replacePasswordHash(tx, id, old, fresh)
}
