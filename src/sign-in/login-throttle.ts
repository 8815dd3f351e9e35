import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { networkOf } from '#src/http/network.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { isKnownDevice } from './devices.ts'
import { findThrottle, removeThrottle, removeThrottles } from './store.ts'
import { countFailure, type Limit, ROW, type ThrottleKey } from './throttle.ts'

/** Attempts of one network at one account that pass although the account's common budget is spent. */
const OWN: Limit = { kind: 'window', count: 5, window: DAY, wait: DAY }
/** Those of all networks together: NIST SP 800-63B section 3.2.2 allows no more than 100 failures in a row. */
const SPARE: Limit = { kind: 'window', count: 100, window: DAY, wait: DAY }

/** Attempts side by side while an account has few failures; then one. */
const ABREAST = 20

/** Whose attempts are counted: those of a name as it was typed (`accountName`), and those of the person behind it. */
export interface Counted {
  name: string
  user: Pick<UserRow, 'id'> | undefined
}

/** A budget that an attempt may draw on. */
export interface Budget {
  /** Attempts under the same text run at most `room` side by side. */
  key: string
  /** Milliseconds until it is free. */
  wait: number
  room: number
  /** A failure counts against these. */
  failed: ThrottleKey[]
  /** A success counts against these: a right password from an unknown browser is no way round them. */
  passed: ThrottleKey[]
}

/**
 * The attempt passes if one budget of each list is free. `name` is told to the client. `person` is not: a common wait would
 * tell that two names belong to one account. A name that belongs to nobody is counted alike.
 */
export interface Budgets {
  name: Budget[]
  person: Budget[]
  /** The user has signed in with this browser: no failure of others holds it up, the network's included. */
  is_known: boolean
}

type Clocked = Pick<Context, 'clock'>

const deviceKey = (id: string, { device_hash }: ClientInfo): string => `device:${id}:${device_hash}`
const subjectsOf = ({ name, user }: Counted) => [`account:${name}`, `person:${user?.id ?? name}`] as const

/**
 * A known browser has a budget of its own. All others share one for each account; each network has a small one beside it, so
 * one network cannot close an account to its owner. Networks are never "known": behind a shared one, a stranger would learn
 * who has an account.
 */
export const budgetsOf = async (
  { clock }: Clocked,
  q: Queries,
  counted: Counted,
  client_info: ClientInfo,
): Promise<Budgets> => {
  const find = async (key: string, limit: Limit) => {
    const row = await findThrottle(q, key)
    const wait = Math.max(0, (row?.blocked_until ?? 0) - clock.now())
    return { key, limit, wait, room: (row?.failures ?? 0) < ROW.after ? ABREAST : 1 }
  }
  const id = counted.user?.id ?? ''
  if (await isKnownDevice(q, id, client_info)) {
    const device = await find(deviceKey(id, client_info), ROW)
    return { name: [{ ...device, failed: [device], passed: [] }], person: [], is_known: true }
  }
  const budgets = async (subject: string): Promise<Budget[]> => {
    const common = await find(subject, ROW)
    // Of a whole /48: its 65,536 networks would use up what all others share.
    const own = await find(`${subject}:${networkOf(client_info.ip_address, 48)}`, OWN)
    const spare = await find(`${subject}:spare`, SPARE)
    // A success counts nothing here: strangers in its network would see that there was one.
    const shared = { ...common, failed: [common, own], passed: [] }
    if (common.room > 1) return [shared]
    const wait = Math.max(own.wait, spare.wait)
    return [shared, { ...own, wait, room: 1, failed: [common, own, spare], passed: [own, spare] }]
  }
  const [name, person] = subjectsOf(counted)
  return { name: await budgets(name), person: await budgets(person), is_known: false }
}

/**
 * After a success: ends the row of failures and counts the attempt where any attempt counts. In a known browser the common row
 * stays: strangers would see the owner come.
 */
export const settleBudgets = async (
  context: Clocked,
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

/** Forgets all that was counted against a name, the person and their browsers. */
export const clearBudgets = async (tx: Transaction, counted: Counted): Promise<void> => {
  for (const subject of subjectsOf(counted)) {
    await removeThrottle(tx, subject)
    await removeThrottles(tx, `${subject}:`)
  }
  if (counted.user) await removeThrottles(tx, `device:${counted.user.id}:`)
}
