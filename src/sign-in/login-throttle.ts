import type { Core } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { networkOf } from '#src/http/network.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { isKnownDevice } from './known-browsers.ts'
import { findThrottle, removeThrottle, type ThrottleSet } from './store.ts'
import { countFailure, type Limit, ROW, type ThrottleKey, waitUntil } from './throttle.ts'

/**
 * Maximum attempts per day from each network on an account whose shared budget is spent. The owner of the
 * account can thus sign in, even after a few mistyped passwords. Attempts that failed before the shared
 * budget was spent also count.
 */
const PER_NETWORK: Limit = { kind: 'window', count: 5, window: DAY, wait: DAY }
/**
 * Maximum attempts per day, over all networks together, on an account whose shared budget is spent. NIST
 * SP 800-63B section 3.2.2 allows at most 100 consecutive failures.
 */
const SPARE_LIMIT: Limit = { kind: 'window', count: 100, window: DAY, wait: DAY }

/**
 * Maximum sum of the failures and the running attempts of an account that has fewer than five failures
 * (`ROW.after`). From the fifth failure on, attempts run one by one. Several people can thus sign in under
 * one name at the same time, but an attacker gains nothing by sending many attempts at once.
 */
const CONCURRENT = 20
/**
 * Maximum concurrent attempts of one user in all known browsers together. These attempts are not charged to a
 * network and therefore need their own limit. A person signs in from a few devices.
 */
const KNOWN_CONCURRENT = 5

/**
 * The two subjects that attempts are counted against: the typed name (`accountName`) and the user with this
 * name.
 */
export interface Counted {
  name: string
  user: Pick<UserRow, 'id'> | undefined
}

/** A budget of attempts. */
export interface Budget {
  key: string
  /** Milliseconds until an attempt is allowed. */
  wait: number
  /** Maximum number of concurrent attempts with the same `key`. */
  concurrent: number
  /** Keys that count a failure. */
  failed: ThrottleKey[]
  /**
   * Keys that also count a success. After the shared budget is spent, a correct password uses up an attempt
   * like a wrong password.
   */
  passed: ThrottleKey[]
}

/**
 * An attempt is allowed if one budget of each list is free. An empty list sets no limit. If `name` is
 * throttled, the answer says so. If only `user` is throttled, the answer is that of a wrong proof, because
 * another answer would reveal that two names belong to one account. A name without a user also has two lists,
 * so that it is throttled like the name of a user.
 */
export interface Budgets {
  name: Budget[]
  user: Budget[]
  /**
   * True when this browser is known for the user. Failures in other browsers then do not delay the attempt,
   * even if these browsers are in the same network.
   */
  is_known: boolean
}

const deviceKey = (id: string, { device_hash }: ClientInfo): string => `device:${id}:${device_hash}`
const subjectsOf = ({ name, user }: Counted) => [`account:${name}`, `person:${user?.id ?? name}`] as const

/**
 * Returns the budgets of an attempt. A known browser has its own budget. All other browsers share one budget
 * per account. In addition, each network has a small budget, so that one network cannot lock an account. The
 * budget of a network does not grow after a login from the network. A larger budget would show other people
 * in the network which accounts exist.
 */
export const budgetsOf = async (
  { clock }: Core,
  q: Queries,
  counted: Counted,
  client_info: ClientInfo,
): Promise<Budgets> => {
  const find = async (key: string, limit: Limit) => {
    const row = await findThrottle(q, key)
    const wait = waitUntil(row?.blocked_until ?? 0, limit, clock.now())
    const failures = row?.failures ?? 0
    return { key, limit, wait, concurrent: failures < ROW.after ? CONCURRENT - failures : 1 }
  }
  const id = counted.user?.id ?? ''
  if (await isKnownDevice(q, id, client_info)) {
    const device = await find(deviceKey(id, client_info), ROW)
    const [key, concurrent] = [`known:${id}`, Math.min(device.concurrent, KNOWN_CONCURRENT)]
    return { name: [{ ...device, key, concurrent, failed: [device], passed: [] }], user: [], is_known: true }
  }
  const budgets = async (subject: string): Promise<Budget[]> => {
    const common = await find(subject, ROW)
    // An IPv6 network is a /48 here. Otherwise the 65,536 /64 networks of one /48 could use up the spare
    // budget.
    const own = await find(`${subject}:${networkOf(client_info.ip_address, 48)}`, PER_NETWORK)
    const spare = await find(`${subject}:spare`, SPARE_LIMIT)
    // While the shared budget lasts, a success does not count against `own`, because other people in the same
    // network could detect the count.
    const shared = { ...common, failed: [common, own], passed: [] }
    if (common.concurrent > 1) return [shared]
    const wait = Math.max(own.wait, spare.wait)
    return [shared, { ...own, wait, concurrent: 1, failed: [common, own, spare], passed: [own, spare] }]
  }
  const [name, person] = subjectsOf(counted)
  return { name: await budgets(name), user: await budgets(person), is_known: false }
}

/**
 * Updates the budgets after a success. Resets the count of consecutive failures, and counts the attempt
 * against the keys in `passed`. A success in a known browser does not reset the shared count, because a reset
 * would show other people that the owner has signed in.
 */
export const countSuccess = async (
  context: Core,
  tx: Transaction,
  counted: Counted,
  passed: readonly ThrottleKey[],
  client_info: ClientInfo,
): Promise<void> => {
  const id = counted.user?.id ?? ''
  const keys = (await isKnownDevice(tx, id, client_info)) ? [deviceKey(id, client_info)] : subjectsOf(counted)
  for (const key of keys) await removeThrottle(tx, key)
  await countFailure(context, tx, passed)
}

/** Returns the keys of all counts of a name, of its user and of the user's browsers. */
export const countsOf = (counted: Counted): ThrottleSet => {
  const subjects = subjectsOf(counted)
  const devices = counted.user ? [`device:${counted.user.id}:`] : []
  return { keys: [...subjects], prefixes: [...subjects.map(subject => `${subject}:`), ...devices] }
}
