import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'

test('O-57 one network fills the store with begun logins to a bound; others, and it a little later, go on', async () => {
  const app = await startApp()
  await addClient(app, 'shop')
  await app.events()
  const begin = (ip: string) => app.call(authorizeUrl('shop'), { ip, headers: { accept: 'text/html' } })
  const pending = async () =>
    (await app.context.store.read(async q => q.select().from(q.tables.authorization_requests))).length

  let refused = 0
  for (let i = 0; i < 1_010; i++) refused += (await begin('2001:db8::1')).status === 429 ? 1 : 0
  expect([refused, await pending()]).toEqual([10, 1_000])

  const answer = await begin('2001:db8::2')
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('location')]).toEqual([
    429,
    '1',
    null,
  ])
  expect((await begin('2001:db8:0:1::1')).status).toBe(200)
  app.clock.advance(1_000)
  expect((await begin('2001:db8::1')).status).toBe(200)
  expect(await app.events()).toEqual([])
}, 20_000)
