import { describe, expect, test } from 'bun:test'
import { answerOf, openBrowser, type Page } from '#test/support/browser.ts'
import { authorizeUrl, CHALLENGE, codeRow, logInTo, REDIRECT, signIn } from '#test/support/people.ts'
import { startAuthorize } from './authorize-world.ts'

const { app, get, stored, expectPage } = await startAuthorize()

/** Returns the error that is sent to the client. Asserts that `state` and `iss` are sent too. */
const refusal = async (page: Page) => {
  expect(page.status).toBe(302)
  expect(page.headers.getSetCookie()).toEqual([])
  const { error = '', error_description = '', state = '', iss = '', ...rest } = answerOf(page)
  expect({ rest, state, iss }).toEqual({ rest: {}, state: 'xyz', iss: app.context.config.url })
  expect(error_description).toMatch(/^[ !#-[\]-~]+$/)
  return error
}

describe('O-06 response types', () => {
  test.each([
    ['token', 'unsupported_response_type'],
    ['id_token', 'unsupported_response_type'],
    ['code token', 'unsupported_response_type'],
    ['code code', 'unsupported_response_type'],
    ['', 'unsupported_response_type'],
    [undefined, 'invalid_request'],
  ] as const)('AUT-02 %p is %s', async (response_type, error) => {
    expect(await refusal(await get({ response_type }))).toBe(error)
  })
})

describe('O-07 PKCE is not optional', () => {
  test.each([
    ['no challenge', { code_challenge: undefined }],
    ['plain', { code_challenge_method: 'plain' }],
    ['no method', { code_challenge_method: undefined }],
    ['42 characters', { code_challenge: CHALLENGE.slice(1) }],
    ['44 characters', { code_challenge: `${CHALLENGE}A` }],
    ['129 characters', { code_challenge: 'A'.repeat(129) }],
    ['illegal characters', { code_challenge: CHALLENGE.replace('E', '+') }],
    ['padding', { code_challenge: `${CHALLENGE}=` }],
  ])('%s', async (_, more) => {
    expect(await refusal(await get(more))).toBe('invalid_request')
  })
})

test('O-23 the answer carries the issuer', async () => {
  const answer = await logInTo(openBrowser(app), 'web', 'ada')
  expect(answer).toEqual({ code: expect.any(String), state: 'xyz', iss: app.context.config.url })
  expect(answer.code).toMatch(/^[\w-]{200,512}$/)
})

describe('O-25 state is returned byte for byte', () => {
  test.each([
    ['2 KB', 'x'.repeat(2048)],
    ['spaces', ' a  b '],
    ['ampersands', 'a&b=c&&state=d'],
    ['a NUL', 'a\0b'],
    ['line breaks', 'a\r\nb\nc\rd'],
    ['Unicode', 'Zoë 🦊 ﬁ'],
    ['a script', '"></script><script>alert(1)</script>'],
    ['percent signs', '%00%26%'],
    ['plus signs', 'a+b%2Bc'],
  ])('%s', async (_, state) => {
    expect((await logInTo(openBrowser(app), 'web', 'ada', { state })).state).toBe(state)
    expect(answerOf(await get({ state, prompt: 'none' })).state).toBe(state)
  })

  test('is left out when the request had none', async () => {
    expect(Object.keys(await logInTo(openBrowser(app), 'web', 'ada', { state: undefined }))).toEqual([
      'code',
      'iss',
    ])
  })

  test('4097 characters are refused', async () => {
    expect(answerOf(await get({ state: 'x'.repeat(4097) })).error).toBe('invalid_request')
  })
})

test('O-26 a query in the redirect URI is kept', async () => {
  const browser = openBrowser(app)
  const page = await browser.get(authorizeUrl('web', { redirect_uri: 'https://app.example/with?tenant=1' }))
  const { location } = await signIn(browser, page, 'ada')
  expect(location).toMatch(/^https:\/\/app\.example\/with\?tenant=1&code=[\w-]{200,512}&state=xyz&iss=/)
})

describe('O-40 a parameter that is sent twice', () => {
  const twice = (name: string, value: string) =>
    openBrowser(app).get(`${authorizeUrl('web')}&${new URLSearchParams([[name, value]])}`)

  test.each([
    ['client_id', 'web'],
    ['client_id', 'other'],
    ['redirect_uri', REDIRECT],
  ])('%s shows a page', async (name, value) => {
    const page = await twice(name, value)
    expect(page.status).toBe(400)
    expect(page.location).toBeUndefined()
  })

  test.each([
    ['scope', 'openid'],
    ['scope', 'email'],
    ['response_type', 'code'],
    ['code_challenge', CHALLENGE],
    ['unknown', '1'],
  ])('%s is invalid_request', async (name, value) => {
    const url = `${authorizeUrl('web', { unknown: '1' })}&${new URLSearchParams([[name, value]])}`
    expect(await refusal(await openBrowser(app).get(url))).toBe('invalid_request')
  })

  test('in query and body', async () => {
    const browser = openBrowser(app)
    const page = await browser.post(authorizeUrl('web'), { scope: 'openid' })
    expect(await refusal(page)).toBe('invalid_request')
    expect((await browser.post(authorizeUrl('web'), { client_id: 'web' })).status).toBe(400)
  })
})

test('O-42 caches store neither pages nor redirects', async () => {
  const browser = openBrowser(app)
  const page = await browser.get(authorizeUrl('web'))
  const done = await browser.submit(page, { username: 'ada', password: 'Correct-horse-7' })
  const refused = await browser.get(authorizeUrl('web', { scope: 'no' }))
  for (const { headers } of [page, done, refused]) {
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('pragma')).toBe('no-cache')
  }
  expect(done.headers.get('referrer-policy')).toBe('no-referrer')
})

describe('O-45 response modes other than query and form_post', () => {
  test.each([['fragment'], ['form_post.jwt'], ['query.jwt'], ['jwt'], ['web_message'], ['junk']])(
    '%s',
    async response_mode => {
      const page = await get({ response_mode })
      expect(await refusal(page)).toBe('invalid_request')
      expect(page.location).not.toContain('#')
    },
  )
})

describe('O-47 prompts', () => {
  test.each([['none login'], ['login none'], ['create'], ['login login'], [' '], ['LOGIN'], ['none,login']])(
    '%j is invalid_request',
    async prompt => {
      expect(await refusal(await get({ prompt }))).toBe('invalid_request')
    },
  )
})

describe('O-49 max_age', () => {
  test.each([['-1'], ['abc'], ['1e3'], ['1.5'], ['100000000000000000000'], [' 1']])(
    '%j is invalid_request',
    async max_age => {
      expect(await refusal(await get({ max_age }))).toBe('invalid_request')
    },
  )
})

describe('scope', () => {
  test.each([['admin'], ['openid unknown'], ['openid\temail'], ['"']])(
    'AUT-01 %j is invalid_scope',
    async scope => {
      expect(await refusal(await get({ scope }))).toBe('invalid_scope')
    },
  )

  test('AUT-07 a missing scope means openid', async () => {
    const { code } = await logInTo(openBrowser(app), 'web', 'ada', { scope: undefined })
    expect((await codeRow(app, code)).scope).toBe('openid')
  })
})

test('AUT-03 a client without the code grant is unauthorized_client', async () => {
  expect(await refusal(await get({}, 'machine'))).toBe('unauthorized_client')
})

test('AUT-04 another organization than the client’s own needs a capability', async () => {
  expect(await refusal(await get({ organization_id: 'org_other' }))).toBe('invalid_request')
})

test('O-51 a login_hint may be any text', async () => {
  const page = await get({ login_hint: '"><img src=x onerror=alert(1)>' })
  expect(page.forms[0]?.fields.username).toBe('"><img src=x onerror=alert(1)>')
  expect(page.html).not.toContain('<img src=x')
  expect((await get({ login_hint: 'x'.repeat(6000) })).forms[0]?.fields.username).toBe('')
})

test('O-52 an unsupported optional parameter is no error', async () => {
  for (const wishes of [
    { ui_locales: 'xx-junk !!! </html>' },
    { ui_locales: Array.from({ length: 1000 }, (_, i) => `nl-x-a${i}`).join(' ') },
    { acr_values: 'urn:junk:☃ 7' },
    { display: 'hologram', claims: '{', unknown: 'x' },
  ])
    expect((await get(wishes)).heading).toBe('Sign in')
})

describe('O-53 request objects and dynamic registration', () => {
  test.each([
    ['request', 'eyJhbGciOiJub25lIn0.e30.', 'request_not_supported'],
    ['request_uri', 'http://127.0.0.1:1/secret', 'request_uri_not_supported'],
    ['registration', '{}', 'registration_not_supported'],
  ])('%s', async (name, value, error) => {
    expect(await refusal(await get({ [name]: value }))).toBe(error)
  })
})

test('O-67 the issuer comes from the settings, whatever Host says', async () => {
  const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
  const browser = openBrowser(app, { headers })
  const page = await signIn(browser, await browser.get(authorizeUrl('web')), 'ada')
  expect(answerOf(page).iss).toBe('http://localhost:8080')
  expect(page.location).not.toContain('evil')
})

describe('O-32 a POST from another site', () => {
  const parameters = () => new URL(authorizeUrl('web'), 'http://x').search.slice(1)
  const crossSite = { origin: 'https://app.example' }

  test('AUT-06 is stored and replayed as a same-site GET that sends the cookies', async () => {
    const browser = openBrowser(app)
    await logInTo(browser, 'web', 'ada')
    const own = new Map(browser.cookies)
    browser.cookies.clear()
    const stored = await browser.post('/oauth/authorize', parameters(), crossSite)
    expect(stored.status).toBe(303)
    expect(browser.received).toEqual([])
    for (const [name, value] of own) browser.cookies.set(name, value)
    expect(answerOf(await browser.follow(stored)).code).toBeString()
    const again = await browser.get(stored.location ?? '')
    expect([again.status, again.heading]).toEqual([400, 'This page has expired'])
  })

  test('leads to a login page that can be reloaded', async () => {
    const browser = openBrowser(app)
    const stored = await browser.post('/oauth/authorize', parameters(), crossSite)
    const page = await browser.follow(stored)
    expect(page.url).toStartWith('/oauth/login?request=')
    expect((await browser.get(page.url)).heading).toBe('Sign in')
    expect((await signIn(browser, page, 'ada')).location).toStartWith(REDIRECT)
  })

  test('is refused like a GET, before it is stored', async () => {
    const before = await stored()
    const browser = openBrowser(app)
    await expectPage(
      await browser.post('/oauth/authorize', `${parameters()}x&redirect_uri=https://evil.example/`),
    )
    const refused = await browser.post('/oauth/authorize', `${parameters()}&prompt=junk`, crossSite)
    expect(await refusal(refused)).toBe('invalid_request')
    expect(await stored()).toEqual(before)
  })

  test('is stored for five minutes', async () => {
    const browser = openBrowser(app)
    const stored = await browser.post('/oauth/authorize', parameters(), crossSite)
    app.clock.advance(5 * 60_000)
    expect((await browser.get(stored.location ?? '')).status).toBe(400)
  })

  test('must be a form of limited size', async () => {
    const browser = openBrowser(app)
    const json = await browser.post('/oauth/authorize', '{}', { 'content-type': 'application/json' })
    expect([json.status, json.location]).toEqual([415, undefined])
    const large = await browser.post('/oauth/authorize', `${parameters()}&x=${'x'.repeat(70_000)}`)
    expect([large.status, large.heading]).toEqual([413, 'That’s too much at once'])
  })
})

test('O-57 at most a hundred parameters', async () => {
  const many = Array.from({ length: 100_000 }, (_, i) => `p${i}=1`).join('&')
  const page = await openBrowser(app).get(`${authorizeUrl('web')}&${many}`)
  expect([page.status, page.location]).toEqual([400, undefined])
})

test('refused requests leave nothing but one event', async () => {
  const { app, get, stored } = await startAuthorize()
  await app.events()
  const before = await stored()
  for (const more of [{ scope: 'no' }, { redirect_uri: 'https://evil.example/' }, { prompt: 'none' }])
    await get(more)
  expect(await stored()).toEqual(before)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata.reason])).toEqual([
    ['client.request_refused', 'redirect_uri_not_registered'],
  ])
})
