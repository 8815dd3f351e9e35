import { hash } from 'node:crypto'
import { and, asc, type Column, eq, gt, inArray, type SQL, sql } from 'drizzle-orm'
import type { Core } from '#src/context.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { beginPurge, endPurge, findPurge } from '#src/storage/purges.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { settingsOf } from './settings.ts'
import { readOrganization } from './store.ts'
import { searchableNames } from './user-attributes.ts'

/** Maximum numbers of users and of new rows in one write of a rebuild. Other writes wait for this write. */
const BATCH = { users: 100, rows: 1000 }
/**
 * Maximum number of indexed items of a list. A definition also allows this number, but a list that is older
 * than its definition may have tens of thousands of items.
 */
const ITEMS = 100
/** Maximum number of rows in one statement. SQLite allows 32,766 parameters. */
const ROWS = 1000

interface IndexedUser {
  id: UserId
  organization_id: OrganizationId
  attributes: Record<string, unknown>
}

const hashOf = (text: string): string => hash('sha256', text, 'base64url')
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const rowsOf = ({ id, organization_id, attributes }: IndexedUser, names: readonly string[]) =>
  names.flatMap(name => {
    if (!Object.hasOwn(attributes, name)) return []
    const value = attributes[name]
    const hashes = new Set(
      (Array.isArray(value) ? value.slice(0, ITEMS) : [value]).map(item => hashOf(textOf(item))),
    )
    return [...hashes].map(value_hash => ({ user_id: id, organization_id, name, value_hash }))
  })

/** Replaces all index rows of `users` with rows for the attributes in `names`. */
export const indexAttributes = async (
  tx: Transaction,
  users: IndexedUser[],
  names: readonly string[],
): Promise<void> => {
  const { user_attributes: t } = tx.tables
  await tx.delete(t).where(
    inArray(
      t.user_id,
      users.map(({ id }) => id),
    ),
  )
  const rows = users.flatMap(user => rowsOf(user, names))
  for (let at = 0; at < rows.length; at += ROWS) await tx.insert(t).values(rows.slice(at, at + ROWS))
}

/**
 * Prefix of the ids of rows in `purges` that request a rebuild of an index. Every other row in `purges` has
 * the id of a deleted object. Ids of objects contain no space, so they never equal the id of a request.
 */
const REQUEST = 'attributes '

/** A row in `purges` that requests a rebuild. */
type IndexRequest = Awaited<ReturnType<typeof beginPurge>>

/**
 * Requests a rebuild of the organization's index. Searches for attributes fail until {@link rebuildIndex} has
 * finished. Ends the runs of earlier requests.
 */
export const beginIndex = (tx: Transaction, id: OrganizationId, now: number): Promise<IndexRequest> =>
  beginPurge(tx, 'attribute_index', REQUEST + id, now)

/** Returns the next users of an organization after `name` in the order of user names. */
const usersAfter = (q: Queries, organization_id: OrganizationId, name: string) => {
  const { users } = q.tables
  return q
    .select({
      id: users.id,
      organization_id: users.organization_id,
      attributes: users.attributes,
      name: users.username_fold,
    })
    .from(users)
    .where(and(eq(users.organization_id, organization_id), gt(users.username_fold, name)))
    .orderBy(asc(users.username_fold))
    .limit(BATCH.users)
}

/**
 * Returns the number of users that one write indexes. It is as large as the maximum number of rows allows,
 * but at least one.
 */
const fitting = (users: IndexedUser[], names: readonly string[]): number => {
  let rows = 0
  const over = users.findIndex(user => {
    rows += rowsOf(user, names).length
    return rows > BATCH.rows
  })
  return over < 0 ? users.length : Math.max(over, 1)
}

/**
 * Rebuilds the index of an organization in writes of bounded size. A run ends early when the definitions
 * change again, because the new change starts its own run. If each run indexed all users, an administrator
 * who keeps changing definitions would delay the purges of other organizations. If two runs of one request
 * work at the same time, the first run that finishes ends the other.
 */
export const rebuildIndex = async (context: Core, request: IndexRequest): Promise<void> => {
  const id = request.id.slice(REQUEST.length) as OrganizationId
  for (let after: string | undefined = ''; after !== undefined; ) {
    const last: string = after
    await context.store.drained()
    after = await context.store.write(async tx => {
      if ((await findPurge(tx, request.id)) !== request.created_at) return undefined
      const organization = await readOrganization(tx, id)
      const names = organization ? searchableNames(settingsOf(organization).user_attributes) : []
      const found = await usersAfter(tx, id, last)
      const batch = found.slice(0, fitting(found, names))
      if (batch.length > 0) await indexAttributes(tx, batch, names)
      const isLast = batch.length === found.length && found.length < BATCH.users
      if (isLast) await endPurge(tx, request.id)
      tx.changed('users')
      return isLast ? undefined : batch.at(-1)?.name
    })
  }
}

/**
 * Refuses a search while the index is being built, because an incomplete index lacks users.
 *
 * @throws AppError 503 `temporarily_unavailable`
 */
export const requireIndex = async (
  q: Queries,
  organization_id: OrganizationId | undefined,
): Promise<void> => {
  const { purges } = q.tables
  const wanted = organization_id
    ? eq(purges.id, REQUEST + organization_id)
    : eq(purges.kind, 'attribute_index')
  const rows = await q.select({ id: purges.id }).from(purges).where(wanted).limit(1)
  if (rows.length > 0)
    throw retryLater('temporarily_unavailable', 'The attribute index is being built.', MINUTE)
}

/** Condition: the index row has this value of this attribute. */
export const isValue = ({ tables }: Queries, [name, value]: readonly [name: string, value: string]) => {
  const { user_attributes: t } = tables
  return and(eq(t.name, name), eq(t.value_hash, hashOf(value)))
}

/** Condition: the user in this column has this value of this attribute. */
export const hasValue = (q: Queries, user_id: Column, value: readonly [name: string, value: string]): SQL => {
  const { user_attributes: t } = q.tables
  return sql`EXISTS (SELECT 1 FROM ${t} WHERE ${t.user_id} = ${user_id} AND ${isValue(q, value)})`
}
