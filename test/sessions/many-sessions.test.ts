import { expect, test } from 'bun:test'
import { newId, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { narrowest, type SessionFilter } from '#src/sessions/filter-store.ts'
import { countSessions, listSessions } from '#src/sessions/list-store.ts'
import type { Session } from '#src/sessions/store.ts'
import { START } from '#test/support/app.ts'
import { analyze } from '#test/support/postgres.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'
import { turnsOf } from '#test/support/turns.ts'

const store = await freshStore()
const own: OrganizationId = 'org_own'
const other: OrganizationId = 'org_other'
const users = Array.from({ length: 4 }, (_, i) => ({
  id: `usr_${i}` as UserId,
  organization_id: i < 3 ? own : other,
}))

/**
 * The organization `own` has six of its 12,000 sessions at `shared`, and all others at `app`. All 12,000
 * sessions of the organization `other` are at `shared`.
 */
const sessions = Array.from({ length: 24_000 }, (_, i): Session => {
  const user = users[i % 2 === 0 ? 3 : i % 500 === 1 ? 1 : 0] ?? { id: 'usr_', organization_id: own }
  return {
    id: newId('sess', START + i),
    user_id: user.id,
    client_id: user.organization_id === other || i % 4000 === 7 ? 'shared' : 'app',
    organization_id: user.organization_id,
    login_id: `login_${i}`,
    scope: 'openid',
    resources: null,
    ip_address: '192.0.2.1',
    user_agent: '',
    location: '',
    started_at: START + i,
    last_active_at: START + i,
    expires_at: START + 1_000_000,
    due_at: START + 1_000_000,
    ends_by: null,
    ended_at: i % 100 === 3 ? START : null,
    refresh_hash: null,
    tokens_valid_until: null,
    authentication: null,
  }
})

for (let i = 0; i < sessions.length; i += 1000)
  await store.write(tx => tx.insert(tx.tables.sessions).values(sessions.slice(i, i + 1000)))
for (const { id, organization_id } of users)
  await store.write(tx =>
    tx.insert(tx.tables.users).values({
      id,
      organization_id,
      username: id,
      username_fold: id,
      email: id,
      email_fold: id,
      first_name: '',
      last_name: '',
      search_text: id,
      attributes: {},
      password_changed_at: 0,
      created_at: 0,
      updated_at: 0,
    }),
  )
if (isPostgres) await analyze(store.path)

const now = START + 100_000
const filters = [
  {},
  { user_id: 'usr_1' as UserId },
  { client_id: 'shared' },
  { client_id: 'app' },
  { client_id: 'none' },
  { user_id: 'usr_1' as UserId, client_id: 'app' },
  { user_id: 'usr_3' as UserId },
  { organization_id: own },
  { organization_id: other, client_id: 'shared' },
]

test('pages and totals of sessions are those of all sessions that match', async () => {
  for (const within of [undefined, own])
    for (const filter of filters) {
      const fitting = sessions.filter(
        session =>
          session.ended_at === null &&
          (within === undefined || session.organization_id === within) &&
          Object.entries(filter).every(([name, value]) => session[name as keyof Session] === value),
      )
      for (const order of ['asc', 'desc'] as const) {
        const all = order === 'asc' ? fitting : fitting.toReversed()
        for (const start of [0, 3, Math.floor(all.length * 0.9)]) {
          const after = all[start - 1]?.id
          const page = { order, after, limit: 7 }
          const shown = await listSessions(store, { ...filter, within, now, ...page })
          const wanted = (after ? all.slice(start) : all).slice(0, 7).map(({ id }) => id)
          expect([filter, within, page, shown.map(({ id }) => id)]).toEqual([filter, within, page, wanted])
        }
      }
      if (Object.keys(filter).length > 0)
        expect([filter, within, await countSessions(store, { ...filter, within, now }, 10_000)]).toEqual([
          filter,
          within,
          Math.min(fitting.length, 10_001),
        ])
    }
}, 60_000)

test('other requests run while a page and a total compare many sessions', async () => {
  // Each of the two indexes selects about 12,000 sessions: the sessions of the organization, or the sessions
  // of the client.
  const filter = { client_id: 'shared', within: own, now }
  const page = await turnsOf(() => listSessions(store, { ...filter, order: 'asc', limit: 100 }))
  expect(page.result).toHaveLength(6)
  expect(page.turns).toBeGreaterThan(1)
  const total = await turnsOf(() => countSessions(store, filter, 10_000))
  expect(total.result).toBe(6)
  expect(total.turns).toBeGreaterThan(1)
})

test('a client of many organizations is not read for the sessions of a small one', async () => {
  const by = (filter: SessionFilter) => store.read(q => narrowest(q, filter))
  expect(await by({ client_id: 'shared', organization_id: 'org_small' })).toBe('organization_id')
  expect(await by({ client_id: 'none', organization_id: own })).toBe('client_id')
})
