import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import type { Json } from '#test/support/app.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'

const site = startClient()
const REDIRECT = `${site.origin}/callback`
const AFTER_LOGOUT = `${site.origin}/bye`
const PASSWORD = 'Correct-horse-7'

let server: Running & AsyncDisposable
let organization: Json
let user: Json
let client: Json

const made = async (path: string, body: Json): Promise<Json> => {
  const answer = await server.admin('POST', path, body)
  expect(answer.status).toBe(201)
  return answer.body
}

/** Creates the tenant, the user and the client through the admin API. */
beforeEach(async () => {
  server = await serveExecutable()
  organization = await made('/organizations', {
    name: 'Acme',
    slug: 'acme',
    display_name: 'Acme Corporation',
  })
  user = await made('/users', {
    username: 'alice',
    email: 'alice@acme.example',
    email_verified: true,
    first_name: 'Alice',
    last_name: 'Doe',
    password: PASSWORD,
    organization_id: organization.id,
  })
  client = await made('/clients', {
    client_id: 'shop',
    name: 'The Shop',
    type: 'confidential',
    organization_id: organization.id,
    grant_types: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile', 'email'],
    redirect_uris: [REDIRECT],
    post_logout_redirect_uris: [AFTER_LOGOUT],
    capabilities: ['token_introspection'],
  })
}, 30_000)

afterEach(() => server[Symbol.asyncDispose]())

afterAll(async () => {
  await closeChromium()
  await site.stop()
})

/** Acts as a user in a browser: signs in, approves the consent, and ends at the client. */
const walk = async (
  url: URL,
): Promise<{ callback: URL; continueTo(url: URL): Promise<URL>; close(): Promise<void> }> => {
  const { page, close } = await openPage()
  await page.goto(url.href)
  await page.getByLabel('Username or email').fill('alice')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.waitForURL(address => address.href.startsWith(REDIRECT))
  const continueTo = async (next: URL): Promise<URL> => {
    await page.goto(next.href)
    return new URL(page.url())
  }
  return { callback: new URL(page.url()), continueTo, close }
}

testInChromium(
  'openid-client: discovery, code flow with PKCE, userinfo, refresh, introspection, revocation, logout',
  async () => {
    const config = await openid.discovery(
      new URL(server.url),
      client.client_id,
      undefined,
      openid.ClientSecretBasic(client.client_secret),
      { execute: [openid.allowInsecureRequests] },
    )
    const verifier = openid.randomPKCECodeVerifier()
    const checks = {
      expectedState: openid.randomState(),
      expectedNonce: openid.randomNonce(),
      pkceCodeVerifier: verifier,
    }
    const browser = await walk(
      openid.buildAuthorizationUrl(config, {
        redirect_uri: REDIRECT,
        scope: 'openid profile email',
        state: checks.expectedState,
        nonce: checks.expectedNonce,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        max_age: '600',
      }),
    )
    const tokens = await openid.authorizationCodeGrant(config, browser.callback, { ...checks, maxAge: 600 })
    const claims = tokens.claims()
    expect(claims).toMatchObject({
      iss: server.url,
      sub: user.id.slice('usr_'.length),
      aud: client.client_id,
      org_id: organization.id.slice('org_'.length),
      preferred_username: 'alice',
      email: 'alice@acme.example',
      email_verified: true,
      given_name: 'Alice',
      family_name: 'Doe',
    })
    expect(tokens.expires_in).toBe(3600)

    const subject = claims?.sub ?? ''
    const info = await openid.fetchUserInfo(config, tokens.access_token, subject)
    expect(info).toMatchObject({ sub: subject, email: 'alice@acme.example', preferred_username: 'alice' })

    const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(renewed.refresh_token).not.toBe(tokens.refresh_token)
    expect(renewed.id_token).toBeUndefined()

    const live = await openid.tokenIntrospection(config, renewed.access_token)
    expect(live).toMatchObject({ active: true, sub: subject, client_id: client.client_id, username: 'alice' })

    await openid.tokenRevocation(config, renewed.refresh_token ?? '')
    await expect(openid.refreshTokenGrant(config, renewed.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })

    const end = await browser.continueTo(
      openid.buildEndSessionUrl(config, {
        id_token_hint: tokens.id_token ?? '',
        post_logout_redirect_uri: AFTER_LOGOUT,
        state: 'gone',
      }),
    )
    expect(end.href).toBe(`${AFTER_LOGOUT}?state=gone`)
    const afterwards = await browser.continueTo(
      openid.buildAuthorizationUrl(config, {
        redirect_uri: REDIRECT,
        scope: 'openid',
        prompt: 'none',
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    )
    expect(afterwards.searchParams.get('error')).toBe('login_required')
    await browser.close()

    const events = await server.admin('GET', `/events?organization_id=${organization.id}&order=asc&limit=100`)
    expect(events.body.data.map((event: Json) => event.type)).toEqual([
      'organization.created',
      'user.created',
      'client.created',
      'user.login',
      'session.created',
      'token.issued',
      'token.refreshed',
      'token.introspected',
      'token.revoked',
      'user.logout',
    ])
  },
  120_000,
)

testInChromium(
  'oauth4webapi: the same rules, checked by another library',
  async () => {
    const insecure = { [oauth.allowInsecureRequests]: true }
    const issuer = new URL(server.url)
    const as = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }),
    )
    const public_client = await made('/clients', {
      client_id: 'native',
      name: 'Native',
      type: 'public',
      organization_id: organization.id,
      grant_types: ['authorization_code', 'refresh_token'],
      scopes: ['openid'],
      redirect_uris: ['http://127.0.0.1/callback'],
      access_token_signed_response_alg: 'ES256',
      id_token_signed_response_alg: 'ES256',
      id_token_on_refresh: true,
    })
    const self: oauth.Client = { client_id: public_client.client_id, id_token_signed_response_alg: 'ES256' }
    const verifier = oauth.generateRandomCodeVerifier()
    const nonce = oauth.generateRandomNonce()
    const url = new URL(as.authorization_endpoint ?? '')
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: self.client_id,
      redirect_uri: REDIRECT,
      scope: 'openid',
      state: 'a state',
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString()
    const browser = await walk(url)
    const parameters = oauth.validateAuthResponse(as, self, browser.callback, 'a state')
    const answer = await oauth.authorizationCodeGrantRequest(
      as,
      self,
      oauth.None(),
      parameters,
      REDIRECT,
      verifier,
      insecure,
    )
    const tokens = await oauth.processAuthorizationCodeResponse(as, self, answer, {
      expectedNonce: nonce,
      requireIdToken: true,
    })
    await browser.close()

    const request = new Request('http://api.example/', {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    const claims = await oauth.validateJwtAccessToken(as, request, self.client_id, insecure)
    expect(claims).toMatchObject({ client_id: 'native', scope: 'openid', sub: user.id.slice('usr_'.length) })

    const refresh = () =>
      oauth.refreshTokenGrantRequest(as, self, oauth.None(), tokens.refresh_token ?? '', insecure)
    const renewed = await oauth.processRefreshTokenResponse(as, self, await refresh())
    expect(renewed.access_token).not.toBe(tokens.access_token)
    const { nonce: _, ...first } = oauth.getValidatedIdTokenClaims(tokens) ?? {}
    expect(oauth.getValidatedIdTokenClaims(renewed)).toEqual({
      ...first,
      iat: expect.any(Number),
      exp: expect.any(Number),
      at_hash: expect.any(String),
    } as never)
    await expect(oauth.processRefreshTokenResponse(as, self, await refresh())).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  },
  120_000,
)
