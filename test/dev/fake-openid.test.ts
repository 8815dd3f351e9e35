import { expect, test } from 'bun:test'
import * as openid from 'openid-client'
import { DEV_ADMIN_SECRET } from '#src/dev/default-seed.ts'
import { fakeOpenId } from '#src/dev/fake-openid.ts'
import { silentLog } from '#src/lib/log.ts'
import { startGatehouse } from '#src/testing/index.ts'
import { start as startServer } from '#src/testing/start.ts'
import { adminAt } from '#test/support/admin-calls.ts'
import { unescapeHtml } from '#test/support/browser.ts'

const ISSUER = 'http://localhost:9/dev/upstream'
const CALLBACK = 'http://localhost/callback'

const start = async (more: Record<string, string> = {}) => {
  const fake = await fakeOpenId({ issuer: ISSUER })
  const configuration = await openid.discovery(new URL(ISSUER), 'any-client', undefined, openid.None(), {
    [openid.customFetch]: (url, init) => fake.fetch(new Request(url, init as RequestInit)),
    execute: [openid.allowInsecureRequests, openid.enableNonRepudiationChecks],
  })
  const pkceCodeVerifier = openid.randomPKCECodeVerifier()
  const url = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: CALLBACK,
    scope: 'openid',
    state: 'a"<state>',
    nonce: 'n-1',
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    ...more,
  })
  const page = await (await fake.fetch(new Request(url))).text()
  const answer = (decision: string) =>
    fake.fetch(
      new Request(`${ISSUER}/authorize`, {
        method: 'POST',
        body: new URLSearchParams({
          request: decoded(/name="request" value="([^"]*)"/.exec(page)?.[1] ?? ''),
          sub: 'ada',
          name: 'Ada Lovelace',
          email: 'ada@upstream.example',
          email_verified: 'true',
          decision,
        }),
      }),
    )
  const finish = (back: string) =>
    openid.authorizationCodeGrant(configuration, new URL(back), {
      pkceCodeVerifier,
      expectedState: 'a"<state>',
      expectedNonce: 'n-1',
    })
  return { page, answer, finish, configuration }
}

const decoded = (text: string): string =>
  unescapeHtml(text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))))

test('the user picks an account, and openid-client accepts the ID token', async () => {
  const { page, answer, finish, configuration } = await start({ login_hint: 'x"><script>' })
  expect(page).not.toContain('<script>')
  const tokens = await finish((await answer('approve')).headers.get('location') ?? '')
  expect(tokens.claims()).toMatchObject({ sub: 'ada', given_name: 'Ada', family_name: 'Lovelace' })
  expect(await openid.fetchUserInfo(configuration, tokens.access_token, 'ada')).toMatchObject({
    email: 'ada@upstream.example',
    email_verified: true,
  })
})

test('the user declines', async () => {
  const { answer } = await start()
  const back = new URL((await answer('deny')).headers.get('location') ?? '')
  expect(back.searchParams.get('error')).toBe('access_denied')
})

test('the answer is sent as a form when form_post is requested', async () => {
  const { answer } = await start({ response_mode: 'form_post' })
  const form = await (await answer('approve')).text()
  expect(form).toContain(`<form method="post" action="${CALLBACK}">`)
  expect(decoded(form)).toContain('name="state" value="a"<state>"')
})

test('a code works once, with its own verifier', async () => {
  const { answer, finish } = await start()
  const back = (await answer('approve')).headers.get('location') ?? ''
  await finish(back)
  await expect(finish(back)).rejects.toThrow()
})

test('a development server includes one, and is registered as its client', async () => {
  const server = await startServer({ log: silentLog })
  try {
    const made = await adminAt(server.url, DEV_ADMIN_SECRET)('POST', '/identity-providers', {
      type: 'oidc',
      alias: 'fake',
      name: 'Fake provider',
      issuer: `${server.url}/dev/openid`,
      client_id: 'any',
    })
    expect(made.status).toBe(201)
    const away = await fetch(`${server.url}/oauth/social/fake`, { redirect: 'manual' })
    const page = await fetch(away.headers.get('location') ?? '')
    expect(await page.text()).toContain('<h1>Fake provider</h1>')
  } finally {
    await server.stop()
  }
})

test('a server with its own certificate calls the provider that it includes', async () => {
  await using server = await startGatehouse({ tls: true })
  const { token } = await server.mint({ user: 'admin', scope: 'admin' })
  const call = (path: string, init: BunFetchRequestInit = {}) =>
    fetch(server.url + path, {
      ...init,
      redirect: 'manual',
      tls: { ca: Bun.file(server.ca_file ?? '') },
    })
  const made = await call('/api/v1/admin/identity-providers', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      type: 'oidc',
      alias: 'fake',
      name: 'Fake provider',
      issuer: `${server.url}/dev/openid`,
      client_id: 'any',
    }),
  })
  expect(made.status).toBe(201)
  const away = await call('/oauth/social/fake')
  expect(away.headers.get('location')).toStartWith(`${server.url}/dev/openid/authorize?`)
})

test('requests to it are recorded and get faults; controls, pages and the guide get none', async () => {
  await using server = await startGatehouse()
  const ask = async () => (await fetch(`${server.url}/dev/openid/token`, { method: 'POST' })).status
  await server.faults.add({ endpoint: '/dev/openid/token', status: 503, times: 1 })
  expect([await ask(), await ask()]).toEqual([503, 400])
  expect((await server.requests()).map(({ path, status }) => [path, status])).toEqual([
    ['/dev/openid/token', 503],
    ['/dev/openid/token', 400],
  ])
  await server.faults.add({ endpoint: '/dev/saml/*', status: 500 })
  expect((await fetch(`${server.url}/dev/saml/metadata`)).status).toBe(500)
  for (const endpoint of ['/dev/mint', '/dev/', '/dev', '/guide', '/guide/api'] as const)
    await expect(server.faults.add({ endpoint, status: 503 })).rejects.toThrow(/422 .*get no faults/)
})
