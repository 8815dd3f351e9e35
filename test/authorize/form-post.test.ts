/** Tests https://openid.net/specs/oauth-v2-form-post-response-mode-1_0.html */
import { describe, expect, test } from 'bun:test'
import { retryLater } from '#src/lib/app-error.ts'
import { redirectHash } from '#src/tokens/codes.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import {
  addClient,
  addUser,
  authorizeUrl,
  codeRow,
  PASSWORD,
  REDIRECT,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'
import { startAuthorize } from './authorize-world.ts'

const { app, stored } = await startAuthorize()
// A user who approves nothing.
await addUser(app, 'eve')
await addClient(app, 'shop', { consent_required: true })
await addClient(app, 'mobile', {
  type: 'public',
  token_endpoint_auth_method: 'none',
  redirect_uris: ['com.example.app:/cb'],
})

const byPost = (client_id = 'web', more: Record<string, string | undefined> = {}) =>
  authorizeUrl(client_id, { response_mode: 'form_post', ...more })

/** Returns the fields of the form that the page posts to the client. `action` is the redirect URI. */
const postedBy = (page: Page, action = REDIRECT): Record<string, string> => {
  expect([page.status, page.location, page.forms.length]).toEqual([200, undefined, 1])
  expect(page.html).toContain('<form method="post" action="')
  expect(formOf(page).action).toBe(action)
  return formOf(page).fields
}

/** Returns the error in the form. Asserts that the form also has `state` and `iss`. */
const refusalOf = (page: Page): string | undefined => {
  const { error, error_description, ...rest } = postedBy(page)
  expect(rest).toEqual({ state: 'xyz', iss: app.context.config.url })
  expect(error_description).toMatch(/^[ !#-[\]-~]+$/)
  return error
}

const loggedIn = async (username = 'ada') => {
  const browser = openBrowser(app)
  await signIn(browser, await browser.get(authorizeUrl('web')), username)
  return browser
}

test('FRM-01, FRM-02, FRM-06 the form posts code, state and iss; the exchange records the usual events', async () => {
  const { client_secret } = await addClient(app, 'posting')
  const browser = openBrowser(app)
  await app.events()
  const page = await signIn(browser, await browser.get(byPost('posting')), 'ada')
  const fields = postedBy(page)
  expect(fields).toEqual({ code: expect.any(String), state: 'xyz', iss: app.context.config.url })
  expect(formOf(page).buttons).toEqual([])
  expect(page.heading).toBe('Back to The posting')
  expect(await app.events()).toEqual([])
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: fields.code ?? '',
    redirect_uri: REDIRECT,
    client_id: 'posting',
    client_secret,
    code_verifier: VERIFIER,
  })
  expect((await app.call('/oauth/token', { method: 'POST', body })).status).toBe(200)
  const types = (await app.events()).map(({ type }) => type)
  expect(types).toEqual(['user.login', 'session.created', 'token.issued'])
})

test('FRM-01 the form has no state when the request had none', async () => {
  const page = await (await loggedIn()).get(byPost('web', { state: undefined }))
  expect(Object.keys(postedBy(page))).toEqual(['code', 'iss'])
})

test('FRM-02 the action keeps the query of the redirect URI', async () => {
  const redirect_uri = 'https://app.example/with?tenant=1'
  const page = await (await loggedIn()).get(byPost('web', { redirect_uri }))
  expect(Object.keys(postedBy(page, redirect_uri))).toEqual(['code', 'state', 'iss'])
  const { redirect_hash } = await codeRow(app, postedBy(page, redirect_uri).code)
  expect(redirect_hash).toEqual(redirectHash(redirect_uri))
})

test('FRM-02 the action keeps the port of a loopback redirect URI', async () => {
  const redirect_uri = 'http://127.0.0.1:49152/cb'
  const page = await openBrowser(app).get(byPost('native', { redirect_uri, prompt: 'none' }))
  expect(postedBy(page, redirect_uri).error).toBe('login_required')
})

test('FRM-03 the headers of a page that posts a code or an error forbid caching, framing, referrers and inline scripts', async () => {
  const browser = await loggedIn()
  for (const page of [await browser.get(byPost()), await browser.get(byPost('web', { scope: 'no' }))]) {
    postedBy(page)
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'cache-control': 'no-store',
      pragma: 'no-cache',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
    })
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    expect(page.html).not.toMatch(/<script>|<script [^>]*>[^<]|\son\w+=/)
  }
})

describe('FRM-05 the form posts the error', () => {
  test.each<[string, Record<string, string | undefined>, string?]>([
    ['invalid_scope', { scope: 'openid unknown' }],
    ['unsupported_response_type', { response_type: 'token' }],
    ['invalid_request', { prompt: 'none login' }],
    ['invalid_request', { code_challenge: undefined }],
    ['invalid_request', { organization_id: 'org_other' }],
    ['invalid_request', { id_token_hint: 'junk' }],
    ['request_not_supported', { request: 'e30.e30.' }],
    ['unauthorized_client', {}, 'machine'],
    ['login_required', { prompt: 'none' }],
  ])('%s for %j', async (error, more, client_id = 'web') => {
    const before = await stored()
    const browser = openBrowser(app)
    expect(refusalOf(await browser.get(byPost(client_id, more)))).toBe(error)
    expect(browser.received).toEqual([])
    expect(await stored()).toEqual(before)
  })

  test.each([
    ['consent_required', 'shop', {}],
    ['interaction_required', 'web', { acr_values: 'phr' }],
    ['login_required', 'web', { max_age: '0' }],
  ] as const)('%s with prompt=none at %s, %j', async (error, client_id, more) => {
    const browser = await loggedIn()
    app.clock.advance(1000)
    expect(refusalOf(await browser.get(byPost(client_id, { prompt: 'none', ...more })))).toBe(error)
  })

  test('access_denied after a denied consent, once and without an event', async () => {
    const browser = await loggedIn()
    const consent = await browser.get(byPost('shop'))
    await app.events()
    const denied = await browser.submit(consent, { decision: 'deny' })
    expect(refusalOf(denied)).toBe('access_denied')
    expect((await browser.submit(consent, { decision: 'deny' })).heading).toBe('This page has expired')
    expect(await app.events()).toEqual([])
  })

  test('temporarily_unavailable and server_error when the store fails', async () => {
    const browser = await loggedIn()
    const { write } = app.context.store
    for (const [error, failure] of [
      ['temporarily_unavailable', retryLater('temporarily_unavailable', 'The store cannot write.', 1000)],
      ['server_error', new Error('unexpected')],
    ] as const) {
      app.context.store.write = () => Promise.reject(failure)
      try {
        const nonce = 'n'.repeat(400)
        expect(refusalOf(await browser.get(byPost('web', { nonce })))).toBe(error)
      } finally {
        app.context.store.write = write
      }
    }
  })

  test('an unknown redirect URI shows a page without a form', async () => {
    const page = await openBrowser(app).get(byPost('web', { redirect_uri: 'https://evil.example/' }))
    expect([page.status, page.forms, page.location]).toEqual([400, [], undefined])
  })
})

describe('FRM-06 the form has the state as it was sent', () => {
  test.each([
    ['markup', '"><script>alert(1)</script><img src=x onerror=alert(1)>\'&amp;&#60;'],
    ['a form', '</form><form action="https://evil.example"><button>'],
    ['4,096 characters', 'x'.repeat(4096)],
    ['right to left overrides', '\u202eevil\u202c\u2066\u200f'],
    ['Unicode', 'Zoë 🦊 ﬁ\u0001\u0085\ufeff'],
    ['spaces and tabs', ' a  b\t'],
    ['separators', 'a&b=c;d+e%00%26'],
  ])('%s', async (_, state) => {
    const browser = await loggedIn('eve')
    const page = await browser.get(byPost('web', { state }))
    expect(Object.keys(postedBy(page))).toEqual(['code', 'state', 'iss'])
    expect(postedBy(page).state).toBe(state)
    expect(page.html.match(/<script\b/g)?.length).toBe(1)
    const consent = await browser.get(byPost('shop', { state }))
    expect(postedBy(await browser.submit(consent, { decision: 'deny' })).state).toBe(state)
  })

  test('10,000 characters, with invalid_request', async () => {
    const state = 'x'.repeat(10_000)
    const { error, state: sent } = postedBy(await openBrowser(app).get(byPost('web', { state })))
    expect([error, sent]).toEqual(['invalid_request', state])
  })
})

describe('FRM-07 the answer is posted', () => {
  test('after login and consent', async () => {
    const browser = openBrowser(app)
    const consent = await signIn(browser, await browser.get(byPost('shop')), 'ada')
    expect(consent.url).toStartWith('/oauth/consent?request=')
    expect(Object.keys(postedBy(await browser.submit(consent, { decision: 'approve' })))).toEqual([
      'code',
      'state',
      'iss',
    ])
  })

  test('after a new password', async () => {
    const { id } = await addUser(app, 'tim')
    await app.admin('POST', `/users/${id}/reset-password`, { password: PASSWORD, temporary: true })
    const browser = openBrowser(app)
    const change = await signIn(browser, await browser.get(byPost()), 'tim')
    const password = 'Another-horse-8'
    const page = await browser.submit(change, { password, password_repeat: password })
    expect(Object.keys(postedBy(page))).toEqual(['code', 'state', 'iss'])
  })

  test('to a request that came as a cross-site POST', async () => {
    const browser = await loggedIn()
    const query = new URL(byPost(), 'http://x').search.slice(1)
    const sent = await browser.post('/oauth/authorize', query, { origin: 'https://app.example' })
    expect(sent.status).toBe(303)
    expect(Object.keys(postedBy(await browser.follow(sent)))).toEqual(['code', 'state', 'iss'])
  })

  test('after the choice of an account; the next request without the mode is redirected', async () => {
    await addUser(app, 'bob')
    const browser = await loggedIn()
    await signIn(browser, await browser.get(authorizeUrl('web', { prompt: 'login' })), 'bob')
    const choice = await browser.get(byPost('web', { prompt: 'select_account' }))
    const login = formOf(choice).buttons[0]?.value ?? ''
    const page = await browser.submit(choice, { login })
    expect(Object.keys(postedBy(page))).toEqual(['code', 'state', 'iss'])
    expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
  })
})

describe('FRM-08 invalid_request in the query', () => {
  const refused = async (client_id: string, more: Record<string, string>) => {
    const page = await openBrowser(app).get(byPost(client_id, more))
    expect([page.status, page.forms]).toEqual([302, []])
    expect(page.location).not.toContain('#')
    return answerOf(page)
  }

  test('for a private-use scheme', async () => {
    expect(await refused('mobile', { redirect_uri: 'com.example.app:/cb' })).toEqual({
      error: 'invalid_request',
      error_description:
        'The response_mode form_post needs an http or https redirect_uri, and a state without line breaks or NUL.',
      state: 'xyz',
      iss: app.context.config.url,
    })
  })

  test.each(['a\nb', 'a\rb', 'a\r\nb', 'a\0b'])(
    'for the state %j, which is returned unchanged',
    async state => {
      expect(await refused('web', { state })).toMatchObject({ error: 'invalid_request', state })
    },
  )
})

test('FRM-07 a login without a client ends at /account', async () => {
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.follow(await browser.get('/account')), 'ada')
  expect([page.url, page.heading]).toEqual(['/account', 'Your account'])
})
