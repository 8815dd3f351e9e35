import { afterAll, expect } from 'bun:test'
import type { Server } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import { Provider } from 'oidc-provider'
import * as openid from 'openid-client'
import type { Page } from 'playwright-core'
import { realClock, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { freePort } from '#test/support/free-port.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'

const site = startClient()
const REDIRECT = `${site.origin}/callback`

const people: Record<string, object> = {
  robin: {
    given_name: 'Robin',
    family_name: 'Upstream',
    email: 'robin@upstream.example',
    email_verified: true,
  },
  grace: { name: 'Grace Hopper', email: 'grace@upstream.example', email_verified: true },
  ada: { email: 'ada@example.com', email_verified: true, name: 'Ada Example' },
  nameless: { email: 'nameless@upstream.example', email_verified: true },
}

/** Runs the provider of the package oidc-provider in this process. The provider accepts any password. */
const startUpstream = async (redirect_uris: string[]): Promise<Server & { issuer: string }> => {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const port = freePort()
  const issuer = `http://localhost:${port}`
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'upstream' }] },
    cookies: { keys: ['upstream-cookies'] },
    clients: [{ client_id: 'gatehouse', client_secret: 'upstream-secret', redirect_uris }],
    claims: {
      openid: ['sub'],
      profile: ['given_name', 'family_name', 'name'],
      email: ['email', 'email_verified'],
    },
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, ...people[id] }),
    }),
    features: { devInteractions: { enabled: true } },
  })
  const server = await new Promise<Server>(done => {
    const listening: Server = provider.listen(port, '127.0.0.1', () => done(listening))
  })
  return Object.assign(server, { issuer })
}

let app: TestApp
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request, socket) => app.fetch(request, socket),
})
const url = `http://localhost:${server.port}`
const upstream = await startUpstream(
  ['query', 'posting'].map(alias => `${url}/oauth/social/${alias}/callback`),
)
// openid-client and oidc-provider use the real clock.
app = await startApp({ url, outbound_allow: [new URL(upstream.issuer).host] }, { clock: realClock })

const { client_secret } = await create(app, '/clients', {
  client_id: 'notes',
  name: 'Orbit Notes',
  type: 'confidential',
  grant_types: ['authorization_code', 'refresh_token'],
  scopes: ['openid', 'profile', 'email'],
  redirect_uris: [REDIRECT],
})
for (const alias of ['query', 'posting'])
  await create(app, '/identity-providers', {
    type: 'oidc',
    alias,
    name: `Upstream by ${alias}`,
    issuer: upstream.issuer,
    client_id: 'gatehouse',
    client_secret: 'upstream-secret',
    response_mode: alias === 'query' ? 'query' : 'form_post',
  })
await addUser(app, 'ada')

afterAll(async () => {
  await closeChromium()
  upstream.closeAllConnections()
  upstream.close()
  await server.stop(true)
  await site.stop()
})

const begin = async (page: Page) => {
  const execute = [openid.allowInsecureRequests, openid.enableNonRepudiationChecks]
  const configuration = await openid.discovery(
    new URL(url),
    'notes',
    undefined,
    openid.ClientSecretBasic(client_secret),
    { execute },
  )
  const [pkceCodeVerifier, expectedState, expectedNonce] = [
    openid.randomPKCECodeVerifier(),
    openid.randomState(),
    openid.randomNonce(),
  ]
  const address = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: REDIRECT,
    scope: 'openid profile email',
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  await page.goto(address.href)
  return async () => {
    await page.waitForURL(`${REDIRECT}?**`)
    return openid.authorizationCodeGrant(configuration, new URL(page.url()), {
      pkceCodeVerifier,
      expectedState,
      expectedNonce,
      idTokenExpected: true,
    })
  }
}

const proveThere = async (page: Page, login: string): Promise<void> => {
  await page.getByPlaceholder('Enter any login').fill(login)
  await page.getByPlaceholder('and password').fill('anything')
  await page.getByRole('button', { name: 'Sign-in' }).click()
}

const signInThere = async (page: Page, login: string): Promise<void> => {
  await proveThere(page, login)
  await page.getByRole('button', { name: 'Continue' }).click()
}

for (const [alias, login, given_name] of [
  ['query', 'robin', 'Robin'],
  ['posting', 'grace', 'Grace'],
] as const)
  testInChromium(
    `FED-01 button, upstream, consent, client, exchange; the answer comes by ${alias}`,
    async () => {
      await app.events()
      const { page, close } = await openPage()
      const finish = await begin(page)
      await page.getByRole('link', { name: `Continue with Upstream by ${alias}` }).click()
      await signInThere(page, login)
      await page.getByRole('button', { name: 'Allow' }).click()
      const tokens = await finish()
      expect(tokens.claims()).toMatchObject({ email: `${login}@upstream.example`, given_name, amr: ['fed'] })
      const types = (await app.events()).map(({ type }) => type)
      expect(types.sort()).toEqual([
        'session.created',
        'token.issued',
        'user.created',
        'user.login',
        'user.updated',
      ])
      await close()
    },
    120_000,
  )

testInChromium(
  'an existing account is connected by its password; the next login needs only the provider',
  async () => {
    const { page, close } = await openPage()
    const finish = await begin(page)
    await page.getByRole('link', { name: 'Continue with Upstream by posting' }).click()
    await signInThere(page, 'ada')
    await page.getByLabel(/^Your .+ password$/).fill(PASSWORD)
    await page.getByRole('button', { name: 'Connect and sign in' }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    expect((await finish()).claims()).toMatchObject({ preferred_username: 'ada', amr: ['pwd', 'fed'] })
    await page.context().clearCookies({ domain: 'localhost', name: /gatehouse/ })
    const again = await begin(page)
    await page.getByRole('link', { name: 'Continue with Upstream by posting' }).click()
    expect((await again()).claims()).toMatchObject({ preferred_username: 'ada', amr: ['fed'] })
    await close()
  },
  120_000,
)

testInChromium(
  'what is missing is asked for, and the person’s own page connects and disconnects',
  async () => {
    const { page, close } = await openPage()
    const finish = await begin(page)
    await page.getByRole('link', { name: 'Continue with Upstream by query' }).click()
    await signInThere(page, 'nameless')
    await page.getByLabel('First name').fill('Nell')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    expect((await finish()).claims()).toMatchObject({
      given_name: 'Nell',
      email: 'nameless@upstream.example',
    })
    await page.goto(`${url}/account`)
    await page.getByRole('button', { name: 'Connect Upstream by posting' }).click()
    // The provider sent no `auth_time`, so the page asks for a new login at the provider.
    await page.getByRole('heading', { name: 'Confirm it’s you' }).waitFor()
    await page.getByRole('link', { name: 'Continue with Upstream by query' }).click()
    await proveThere(page, 'nameless')
    await page.getByRole('button', { name: 'Disconnect Upstream by query' }).click()
    await page.getByText('Account disconnected').waitFor()
    await page.getByText('Your only way to sign in').waitFor()
    await close()
  },
  120_000,
)
