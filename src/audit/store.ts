import { and, asc, desc, eq, gt, inArray, lt, notExists, or, sql } from 'drizzle-orm'
import { DAY } from '#src/lib/duration.ts'
import { forgetAnswers, holdCursors } from '#src/storage/remains.ts'
import { preparedForStart, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** A stored event. */
export type EventRow = Tables['events']['$inferSelect']

/** Maximum number of events of one change: a login has three. */
const MAX_TOGETHER = 3

/** A row to insert. `metadata` is the JSON text from which the MAC was computed. */
type NewEventRow = Omit<EventRow, 'id' | 'type' | 'seq' | 'metadata'> & {
  id: string
  type: string
  metadata: string
}

const columns = Object.keys({
  id: true,
  type: true,
  actor_id: true,
  actor_email: true,
  target_id: true,
  target_type: true,
  organization_id: true,
  ip_address: true,
  user_agent: true,
  timestamp: true,
  metadata: true,
  subject_id: true,
  mac: true,
} satisfies Record<keyof NewEventRow, true>) as (keyof NewEventRow)[]

/** For each row of a statement: the columns of an event with the names of their placeholders. */
const placeholders = Array.from({ length: MAX_TOGETHER }, (_, row) =>
  columns.map(column => [column, row === 0 ? column : `${column}_${row}`] as const),
)

const inserts = Array.from({ length: MAX_TOGETHER }, (_, last) =>
  preparedForStart(`insert ${last + 1} events`, (q, { events }) => {
    // A placeholder within `sql` has no encoder and needs none: `metadata` is JSON text already, and all
    // other columns are stored unchanged.
    const rows = placeholders
      .slice(0, last + 1)
      .map(row => Object.fromEntries(row.map(([column, name]) => [column, sql`${sql.placeholder(name)}`])))
    return q.insert(events).values(rows as never[])
  }),
)

/**
 * Stores up to three events in their order, in one statement. Triggers of the schema refuse later changes to
 * events.
 */
export const insertEvents = (tx: Transaction, rows: readonly NewEventRow[]): Promise<unknown> => {
  const insert = inserts[rows.length - 1]
  if (!insert) throw new RangeError(`${rows.length} events do not fit into one statement`)
  const [first] = rows
  return insert(tx, first && rows.length === 1 ? first : valuesOf(rows))
}

const valuesOf = (rows: readonly NewEventRow[]) => {
  const values: Record<string, unknown> = {}
  rows.forEach((row, i) => {
    for (const [column, placeholder] of placeholders[i] ?? []) values[placeholder] = row[column]
  })
  return values
}

/** Maximum milliseconds for which retention waits for webhooks: a slow webhook must not stop retention. */
const KEPT_FOR_WEBHOOKS = 7 * DAY

/**
 * Returns events older than `before`, oldest first. An event that an enabled webhook has not processed yet is
 * left out, for at most KEPT_FOR_WEBHOOKS.
 */
export const eventsBefore = async (q: Queries, before: number, limit: number): Promise<EventRow[]> => {
  const { events, webhooks } = q.tables
  const waiting = q
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(and(eq(webhooks.enabled, true), lt(webhooks.cursor, events.seq)))
  return q
    .select()
    .from(events)
    .where(
      and(
        lt(events.timestamp, before),
        or(lt(events.timestamp, before - KEPT_FOR_WEBHOOKS), notExists(waiting)),
      ),
    )
    .orderBy(asc(events.timestamp), asc(events.seq))
    .limit(limit)
}

/** Removes events. Returns how many of them still existed. */
export const removeEvents = async (tx: Transaction, gone: Pick<EventRow, 'seq'>[]): Promise<number> => {
  const { events } = tx.tables
  tx.changed('events')
  const numbers = gone.map(({ seq }) => seq)
  const removed = await tx.delete(events).where(inArray(events.seq, numbers)).returning({ id: events.id })
  await forgetAnswers(tx, removed)
  await holdCursors(tx)
  return removed.length
}

/** Returns the events written after `seq` in the order of writing, to read the whole log. */
export const eventsAfter = async (q: Queries, seq: number, limit: number): Promise<EventRow[]> => {
  const { events } = q.tables
  return q.select().from(events).where(gt(events.seq, seq)).orderBy(asc(events.seq)).limit(limit)
}

/** Returns the time of the latest event in milliseconds. Returns undefined when the log is empty. */
export const latestEvent = async (q: Queries): Promise<number | undefined> => {
  const { events } = q.tables
  const [row] = await q
    .select({ timestamp: events.timestamp })
    .from(events)
    .orderBy(desc(events.timestamp))
    .limit(1)
  return row?.timestamp
}
