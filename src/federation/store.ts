import { and, eq, gt } from 'drizzle-orm'
import type { IdentityProviderId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type JourneyRow = Tables['journeys']['$inferSelect']

/** Leaves the row of that state as it is where there is one: the same departure twice at once. */
export const insertJourney = async (tx: Transaction, journey: JourneyRow): Promise<void> => {
  await tx.insert(tx.tables.journeys).values(journey).onConflictDoNothing()
}

interface JourneyKey {
  state_hash: SecretHash
  step: JourneyRow['step']
  provider_id?: IdentityProviderId
  browser_hash?: SecretHash
  now: number
}

const matching = (
  { journeys: t }: Tables,
  { state_hash, step, provider_id, browser_hash, now }: JourneyKey,
) =>
  and(
    eq(t.state_hash, state_hash),
    eq(t.step, step),
    provider_id && eq(t.provider_id, provider_id),
    browser_hash && eq(t.browser_hash, browser_hash),
    gt(t.expires_at, now),
  )

export const findJourney = async (q: Queries, key: JourneyKey): Promise<JourneyRow | undefined> => {
  const [row] = await q.select().from(q.tables.journeys).where(matching(q.tables, key))
  return row
}

/** The journey, for one caller alone. A caller with another browser or provider finds nothing, and uses nothing up. */
export const consumeJourney = async (
  tx: Transaction,
  key: Required<JourneyKey>,
): Promise<JourneyRow | undefined> => {
  const [row] = await tx.delete(tx.tables.journeys).where(matching(tx.tables, key)).returning()
  return row
}
