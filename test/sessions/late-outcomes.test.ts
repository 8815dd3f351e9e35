import { expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { claimLogout, endLogout, postponeLogout } from '#src/sessions/logout-store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

const app = await startApp()
const ada = await addUser(app, 'ada')
const shop = await addClient(app, 'shop', { backchannel_logout_uri: 'https://shop.example/logout' })

const write = <T>(body: (tx: Transaction) => Promise<T>) => app.context.store.write(body)
/** The logouts in their order. The test sends them itself. */
const logouts = () =>
  app.context.store.read(async q => q.select().from(q.tables.logouts).orderBy(q.tables.logouts.number))

test('BCL-08 a logout has one sender and one outcome: a late sender changes neither', async () => {
  for (let i = 0; i < 3; i++) await grantTokens(app, shop, ada)
  await app.admin('DELETE', `/users/${ada.id}/sessions`)
  const [due] = await logouts()
  if (!due) throw new Error('no logout')
  const now = app.clock.now()
  const until = now + MINUTE
  expect(await write(tx => claimLogout(tx, due, until))).toBe(true)
  expect(await write(tx => claimLogout(tx, due, until + 1))).toBe(false)
  await write(tx => postponeLogout(tx, due, { failure: 'late', next_attempt_at: now }))
  expect((await logouts())[0]).toMatchObject({ failure: null, next_attempt_at: until, attempts: 1 })

  await write(tx => endLogout(tx, due, null, now))
  const ended = await logouts()
  expect(ended.map(({ done_at }) => done_at)).toEqual([now, null, null])
  expect(ended[1]?.next_attempt_at).toBe(now)
  await write(tx => endLogout(tx, due, 'late', now + 1))
  expect(await logouts()).toEqual(ended)
  const [done] = ended
  expect(done && (await write(tx => claimLogout(tx, done, until)))).toBe(false)
})
