import { expect, test } from 'bun:test'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addOrganization } from '#test/support/people.ts'
import { addProvider, startFederated } from '../upstream.ts'

test('FED-18 metadata of more than 64 KiB is refused', async () => {
  let more = 0
  await using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) => {
      const { origin } = new URL(url)
      return Response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/keys`,
        more: Array(more).fill({}),
      })
    },
  })
  const issuer = server.url.origin
  const app = await startApp({ outbound_allow: [server.url.host] })
  const leave = async (alias: string) => {
    await addProvider(app, alias, { issuer })
    return (await openBrowser(app).get(`/oauth/social/${alias}`)).status
  }
  more = 20_000
  expect(await leave('usual')).toBe(303)
  more = 22_000
  expect(await leave('large')).toBe(502)
})

test('FED-18 the metadata of 200 providers is kept, the oldest is fetched again', async () => {
  const { app, upstream } = await startFederated()
  const leave = async (alias: string) => {
    const { status } = await openBrowser(app, { ip: '198.51.100.18' }).get(`/oauth/social/${alias}`)
    expect(status).toBe(303)
  }
  // An organization has at most 100 providers.
  const organizations = [await addOrganization(app, 'one'), await addOrganization(app, 'two')]
  for (let i = 0; i <= 200; i++) {
    const { id: organization_id = DEFAULT_ORGANIZATION } = organizations[Math.floor(i / 100)] ?? {}
    await addProvider(app, `kept-${i}`, { organization_id })
    await leave(`kept-${i}`)
  }
  expect(upstream.asked).toHaveLength(201)
  await leave('kept-1')
  expect(upstream.asked).toHaveLength(201)
  await leave('kept-0')
  expect(upstream.asked).toHaveLength(202)
}, 60_000)
