import { expect, test } from 'bun:test'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'
import { addProvider, ISSUER, startFederated } from './upstream.ts'

test('H-20 repeated from one login page to a social provider: one upstream request, and a limit', async () => {
  const { app } = await startFederated()
  await addClient(app, 'web')
  await addProvider(app, 'asking')
  await app.events()
  const browser = openBrowser(app, { ip: '198.51.100.20' })
  const request = /request=([\w-]{43})/.exec((await browser.get(authorizeUrl('web'))).html)?.[1]
  const go = (from = browser, query = `?request=${request}`) => from.get(`/oauth/social/asking${query}`)
  const stored = () =>
    app.context.store.read(async q => [
      await q.$count(q.tables.authorization_requests),
      await q.$count(q.tables.upstream_requests),
    ])
  for (let i = 0; i < 1_000; i++) {
    const { status, location } = await go()
    expect([status, location?.startsWith(ISSUER)]).toEqual([303, true])
  }
  expect(await stored()).toEqual([1, 1])
  const refused = await go()
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect((await go(openBrowser(app, { ip: '203.0.113.20' }), '')).status).toBe(303)
  expect([await stored(), await app.events()]).toEqual([[2, 2], []])
}, 60_000)
