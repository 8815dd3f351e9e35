import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { countSessions, listSessions } from '#src/sessions/list-store.ts'
import { endSessions } from '#src/sessions/store.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Json } from '#test/support/app.ts'
import { freshStore } from '#test/support/store.ts'

/** Runs `body`, and returns the SQL of the statements that it prepares. */
const statementsOf = async (body: () => Promise<unknown>): Promise<string[]> => {
  const statements = new Set<string>()
  const prepare: Json = Database.prototype.prepare
  Database.prototype.prepare = function (this: Database, text: string, ...more: Json[]) {
    statements.add(text)
    return prepare.call(this, text, ...more)
  }
  try {
    await body()
  } finally {
    Database.prototype.prepare = prepare
  }
  return [...statements]
}

const planOf = (db: Database, text: string): string[] =>
  db
    .prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`)
    .all()
    .map(({ detail }) => detail)

test('a page of sessions is read in index order, whatever the filter', async () => {
  const store = await freshStore()
  const statements = await statementsOf(async () => {
    const page = { now: 1, order: 'desc', limit: 21 } as const
    const [user_id, organization_id] = ['usr_1', 'org_1'] as const
    for (const filter of [
      {},
      { user_id },
      { client_id: 'shop' },
      { organization_id },
      { within: organization_id },
    ])
      for (const after of [undefined, 'sess_1']) await listSessions(store, { ...filter, ...page, after })
  })
  const asked = statements.filter(text => / from "sessions" /.test(text))
  expect(asked).toHaveLength(8)
  using db = new Database(store.path, { readonly: true })
  for (const text of asked)
    expect([text, planOf(db, text).filter(step => /^SCAN|TEMP B-TREE/.test(step))]).toEqual([text, []])
})

test('the sessions of a user are found by the user, whatever else the filter has', async () => {
  const store = await freshStore()
  const user = { user_id: 'usr_1', organization_id: 'org_1' } as const
  const statements = await statementsOf(async () => {
    for (const filter of [user, { ...user, client_id: 'shop' }]) {
      const list = { ...filter, within: 'org_1', now: 1 } as const
      await listSessions(store, { ...list, order: 'desc', limit: 21 })
      await countSessions(store, list, 100)
      await store.write(tx => endSessions(tx, filter, 1, 5))
    }
  })
  const asked = statements.filter(text => text.includes('"sessions"."user_id" ='))
  expect(asked).toHaveLength(7)
  using db = new Database(store.path, { readonly: true })
  for (const text of asked) {
    const used = planOf(db, text).flatMap(step => /INDEX (sessions_\w+)/.exec(step)?.[1] ?? [])
    expect([text, used]).toEqual([text, ['sessions_user']])
  }
})

test('R-20 a batch of a deletion searches only its own rows, not all that match', async () => {
  const store = await freshStore()
  const kinds = ['user', 'organization', 'role', 'group', 'client', 'identity_provider'] as const
  const statements = await statementsOf(() =>
    store.write(async tx => {
      for (const kind of kinds) await removeRemains(tx, kind, ['1'], 10)
    }),
  )
  const deletions = statements.filter(text => /^delete .* in \(select /i.test(text))
  expect(deletions.length).toBeGreaterThan(12)
  using db = new Database(store.path, { readonly: true })
  for (const text of deletions) {
    const [outer, , inner] = planOf(db, text)
    expect([text, outer]).not.toEqual([text, inner])
  }
})
