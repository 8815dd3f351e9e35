import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Origin } from '#src/lib/origin.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findThrottle, removeThrottle, removeThrottles, upsertThrottle } from './store.ts'
import { type Limit, networkOf, ROW, type ThrottleKey } from './throttle.ts'

const KNOWN_FOR = 30 * DAY
const KNOWN = { ...ROW, forget_after: KNOWN_FOR } satisfies Limit

/** Whose failures are counted: those of a name as it was typed (`accountName`), and those of the person behind it. */
export interface Counted {
  name: string
  user: Pick<UserRow, 'id'> | undefined
}

/**
 * `name` is told to whoever has to wait. `person` is not: that two names have to wait together would tell that they are one
 * account's. For a name that is nobody's it is counted alike.
 */
export interface Budgets {
  name: ThrottleKey
  person: ThrottleKey
}

const subjectOf = ({ name, user }: Counted): string => user?.id ?? name

const knownKey = (kind: 'known' | 'known-person', subject: string, { ip_address }: Origin): string =>
  `${kind}:${subject}:${networkOf(ip_address)}`

/**
 * Where the person has signed in before, failures are counted apart: strangers who try the account again and again from
 * elsewhere cannot keep its owner out.
 */
export const budgetsOf = async (
  { clock }: Pick<Context, 'clock'>,
  q: Queries,
  counted: Counted,
  origin: Origin,
): Promise<Budgets> => {
  const budget = async (known: string, key: string): Promise<ThrottleKey> => {
    const row = await findThrottle(q, known)
    return row && row.expires_at > clock.now() ? { key: known, limit: KNOWN } : { key, limit: ROW }
  }
  const { name } = counted
  const person = subjectOf(counted)
  return {
    name: await budget(knownKey('known', name, origin), `account:${name}`),
    person: await budget(knownKey('known-person', person, origin), `person:${person}`),
  }
}

/** A success ends the rows of failures, and the network is known from then on. */
export const settleBudgets = async (
  { clock }: Pick<Context, 'clock'>,
  tx: Transaction,
  counted: Counted,
  origin: Origin,
): Promise<void> => {
  const now = clock.now()
  const known = { failures: 0, window_started_at: now, blocked_until: 0, expires_at: now + KNOWN_FOR }
  const person = subjectOf(counted)
  await removeThrottle(tx, `account:${counted.name}`)
  await removeThrottle(tx, `person:${person}`)
  await upsertThrottle(tx, { key: knownKey('known', counted.name, origin), ...known })
  await upsertThrottle(tx, { key: knownKey('known-person', person, origin), ...known })
}

/** Forgets all of it, and where the person was known. */
export const clearBudgets = async (tx: Transaction, counted: Counted): Promise<void> => {
  const person = subjectOf(counted)
  await removeThrottle(tx, `account:${counted.name}`)
  await removeThrottle(tx, `person:${person}`)
  await removeThrottles(tx, `known:${counted.name}:`)
  await removeThrottles(tx, `known-person:${person}:`)
}
