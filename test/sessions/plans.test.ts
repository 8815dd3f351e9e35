import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { listSessions } from '#src/sessions/list-store.ts'
import type { Json } from '#test/support/app.ts'
import { freshStore } from '#test/support/store.ts'

test('a page of sessions is read in index order, whatever the filter', async () => {
  const store = await freshStore()
  const statements = new Set<string>()
  const prepare: Json = Database.prototype.prepare
  Database.prototype.prepare = function (this: Database, text: string, ...more: Json[]) {
    statements.add(text)
    return prepare.call(this, text, ...more)
  }
  try {
    const page = { now: 1, order: 'desc', limit: 21 } as const
    const [user_id, organization_id] = ['usr_1', 'org_1'] as const
    for (const filter of [
      {},
      { user_id },
      { client_id: 'shop' },
      { organization_id },
      { within: organization_id },
    ])
      for (const after of [undefined, 'sess_1'])
        await store.read(q => listSessions(q, { ...filter, ...page, after }))
  } finally {
    Database.prototype.prepare = prepare
  }
  const asked = [...statements].filter(text => / from "sessions" /.test(text))
  expect(asked).toHaveLength(8)
  using db = new Database(store.path, { readonly: true })
  for (const text of asked) {
    const steps = prepare.call(db, `EXPLAIN QUERY PLAN ${text}`).all() as { detail: string }[]
    expect([text, steps.filter(({ detail }) => /^SCAN|TEMP B-TREE/.test(detail))]).toEqual([text, []])
  }
})
