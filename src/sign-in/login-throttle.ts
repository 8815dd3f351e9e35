import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { networkOf } from '#src/http/network.ts'
import type { Origin } from '#src/lib/client-info.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { findThrottle, removeThrottle, removeThrottles, upsertThrottle } from './store.ts'
import { type Limit, ROW, type ThrottleKey } from './throttle.ts'

/** How long a network is remembered from which somebody has signed in, and failures there. */
export const KNOWN_FOR = 30 * DAY
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

type Clocked = Pick<Context, 'clock'>

export const isKnown = async ({ clock }: Clocked, q: Queries, key: string): Promise<boolean> =>
  ((await findThrottle(q, key))?.expires_at ?? 0) > clock.now()

/** Known from now on, and without failures. */
export const remember = ({ clock }: Clocked, tx: Transaction, key: string): Promise<void> => {
  const now = clock.now()
  return upsertThrottle(tx, {
    key,
    failures: 0,
    window_started_at: now,
    blocked_until: 0,
    expires_at: now + KNOWN_FOR,
  })
}

/**
 * Where the person has signed in before, failures are counted apart: strangers who try the account again and again from
 * elsewhere cannot keep its owner out.
 */
export const budgetsOf = async (
  context: Clocked,
  q: Queries,
  counted: Counted,
  origin: Origin,
): Promise<Budgets> => {
  const budget = async (known: string, key: string): Promise<ThrottleKey> =>
    (await isKnown(context, q, known)) ? { key: known, limit: KNOWN } : { key, limit: ROW }
  const { name } = counted
  const person = subjectOf(counted)
  return {
    name: await budget(knownKey('known', name, origin), `account:${name}`),
    person: await budget(knownKey('known-person', person, origin), `person:${person}`),
  }
}

/** A success ends the rows of failures, and the network is known from then on. */
export const settleBudgets = async (
  context: Clocked,
  tx: Transaction,
  counted: Counted,
  origin: Origin,
): Promise<void> => {
  await forgetFailures(tx, counted)
  await remember(context, tx, knownKey('known', counted.name, origin))
  await remember(context, tx, knownKey('known-person', subjectOf(counted), origin))
}

const forgetFailures = async (tx: Transaction, counted: Counted): Promise<void> => {
  await removeThrottle(tx, `account:${counted.name}`)
  await removeThrottle(tx, `person:${subjectOf(counted)}`)
}

/** Forgets all of it, and where the person was known. */
export const clearBudgets = async (tx: Transaction, counted: Counted): Promise<void> => {
  await forgetFailures(tx, counted)
  await removeThrottles(tx, `known:${counted.name}:`)
  await removeThrottles(tx, `known-person:${subjectOf(counted)}:`)
}
