/** Tests the page of response_mode=form_post in Chromium. A server receives the forms that the page posts. */
import { afterAll, describe, expect } from 'bun:test'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import type { Page } from 'playwright-core'
import { realClock, startApp, type TestApp } from '#test/support/app.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { addClient, addUser, PASSWORD } from '#test/support/people.ts'

let received: Request[] = []
let answering = Promise.resolve()
/** Acts as the client: records each request and shows a page. */
const site = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: async request => {
    const { url, method, headers } = request
    if (!url.endsWith('/favicon.ico'))
      received.push(
        new Request(url, { method, headers, ...(method === 'POST' && { body: await request.text() }) }),
      )
    await answering
    return new Response('<!doctype html><title>The client</title>', {
      headers: { 'content-type': 'text/html' },
    })
  },
})
const REDIRECT = `http://127.0.0.1:${site.port}/callback`

let app: TestApp
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request, socket) => app.fetch(request, socket),
})
// oauth4webapi and openid-client use the real clock.
app = await startApp({ url: `http://localhost:${server.port}` }, { clock: realClock })
await addUser(app, 'ada')
const { client_secret } = await addClient(app, 'notes', {
  redirect_uris: [REDIRECT, `${REDIRECT}?tenant=1`],
  consent_required: true,
})

afterAll(async () => {
  await closeChromium()
  await server.stop(true)
  await site.stop(true)
})

const configuration = await openid.discovery(
  new URL(app.context.config.url),
  'notes',
  undefined,
  openid.ClientSecretBasic(client_secret),
  { execute: [openid.allowInsecureRequests, openid.enableNonRepudiationChecks] },
)

const ask = async (page: Page, state: string, more: Record<string, string> = {}) => {
  const [pkceCodeVerifier, expectedNonce] = [openid.randomPKCECodeVerifier(), openid.randomNonce()]
  const address = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: REDIRECT,
    response_mode: 'form_post',
    scope: 'openid profile',
    state,
    nonce: expectedNonce,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    ...more,
  })
  await page.goto(address.href, { waitUntil: 'commit' })
  return { pkceCodeVerifier, expectedNonce, expectedState: state, idTokenExpected: true }
}

const signIn = async (page: Page): Promise<void> => {
  await page.getByLabel('Username or email').fill('ada')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

const hostile = '"><script>top.hacked=1</script>\u202e&amp;=+%00 🦊\t'

describe.each([{ javaScriptEnabled: true }, { javaScriptEnabled: false }])('with %o', options => {
  /**
   * Waits until a script or the button has sent the form to the client. Returns the only request that the
   * client got.
   */
  const arrive = async (page: Page, redirect_uri = REDIRECT): Promise<Request> => {
    if (!options.javaScriptEnabled) {
      expect(await page.getByRole('heading').textContent()).toBe('Back to The notes')
      expect(received).toEqual([])
      await page.getByRole('main').getByRole('button').waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
    }
    await page.waitForURL(redirect_uri)
    expect(await page.title()).toBe('The client')
    const [request, ...others] = received
    received = []
    expect(others).toEqual([])
    if (!request) throw new Error('the client got nothing')
    expect([request.method, request.url, request.headers.get('content-type')]).toEqual([
      'POST',
      redirect_uri,
      'application/x-www-form-urlencoded',
    ])
    // The request has no header that contains the address of the page that posted the form.
    expect([request.headers.get('referer'), request.headers.get('origin')]).toEqual([null, 'null'])
    return request
  }

  testInChromium(
    'FRM-04, FRM-02, FRM-06 openid-client redeems the posted code of a login, and of prompt=none',
    async () => {
      const { page, close } = await openPage(options)
      await app.events()
      const checks = await ask(page, hostile, { prompt: 'consent' })
      await signIn(page)
      await page.getByRole('button', { name: 'Allow' }).click()
      const request = await arrive(page)
      const body = new URLSearchParams(await request.clone().text())
      expect([...body.keys()]).toEqual(['code', 'state', 'iss'])
      expect([body.get('state'), body.get('iss')]).toEqual([hostile, app.context.config.url])
      const tokens = await openid.authorizationCodeGrant(configuration, request, checks)
      expect(tokens.claims()).toMatchObject({ preferred_username: 'ada', aud: 'notes' })
      const types = (await app.events()).map(({ type }) => type)
      expect(types).toEqual(['user.login', 'session.created', 'token.issued'])

      const again = await ask(page, 'again', { prompt: 'none' })
      const silent = await openid.authorizationCodeGrant(configuration, await arrive(page), again)
      expect(silent.claims()?.sub).toBe(tokens.claims()?.sub ?? '')
      await close()
    },
    120_000,
  )

  testInChromium(
    'FRM-04, FRM-02, FRM-05 oauth4webapi reads posted errors',
    async () => {
      const redirect_uri = `${REDIRECT}?tenant=1`
      const { page, close } = await openPage(options)
      for (const [error, more] of [
        ['login_required', { prompt: 'none' }],
        ['invalid_scope', { scope: 'openid unknown' }],
        ['access_denied', { prompt: 'consent' }],
      ] as const) {
        await ask(page, 'x', { redirect_uri, ...more })
        if (error === 'access_denied') {
          await signIn(page)
          await page.getByRole('button', { name: 'Cancel' }).click()
        }
        const body = new URLSearchParams(await (await arrive(page, redirect_uri)).text())
        const read = () =>
          oauth.validateAuthResponse(configuration.serverMetadata(), { client_id: 'notes' }, body, 'x')
        expect(read).toThrow(expect.objectContaining({ error }))
      }
      await close()
    },
    120_000,
  )

  testInChromium(
    'FRM-06 a state of 10,000 characters is posted whole, with invalid_request',
    async () => {
      const { page, close } = await openPage(options)
      const state = '<'.repeat(1_000) + 'x'.repeat(9_000)
      await ask(page, state)
      const body = new URLSearchParams(await (await arrive(page)).text())
      expect([body.get('error'), body.get('state')]).toEqual(['invalid_request', state])
      await close()
    },
    120_000,
  )
})

testInChromium(
  'FRM-04 the button posts nothing more while the client answers slowly',
  async () => {
    const { page, close } = await openPage()
    const { promise, resolve } = Promise.withResolvers<void>()
    answering = promise
    const posted = page.waitForRequest(request => request.method() === 'POST')
    await ask(page, 'x', { prompt: 'none' })
    await posted
    // While scripts are paused, the page reacts to keys, but the test cannot run scripts on the page.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    resolve()
    await page.waitForURL(REDIRECT)
    expect(received.length).toBe(1)
    received = []
    await close()
  },
  120_000,
)
