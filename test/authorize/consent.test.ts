import { describe, expect, test } from 'bun:test'
import { SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import {
  addClient,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  PASSWORD,
  REDIRECT,
  signIn,
} from '#test/support/people.ts'

const app = await startApp()
const ada = await addUser(app, 'ada')
const bob = await addUser(app, 'bob')
await create(app, '/roles', { name: 'boss', permissions: [] })
await addClient(app, 'trusted')
const asking = { consent_required: true, scopes: ['openid', 'profile', 'email', 'files'] }
let clients = 0
/** Adds a client to which no user has consented, and returns its id. */
const newClient = async (more = {}) => {
  const client_id = `shop-${++clients}`
  await addClient(app, client_id, { ...asking, ...more })
  return client_id
}

const consents = () => app.context.store.read(async q => q.select().from(q.tables.consents))

const loggedIn = async (username = 'ada') => {
  const browser = openBrowser(app)
  await logInTo(browser, 'trusted', username)
  return browser
}

const asked = async (more: Record<string, string> = {}) => {
  const client_id = await newClient()
  const browser = await loggedIn()
  const page = await browser.get(authorizeUrl(client_id, { scope: 'openid files', nonce: 'n', ...more }))
  return { client_id, browser, page }
}

test('AUT-14 the page posts the specification’s fields', async () => {
  const { client_id, page } = await asked()
  const { action, fields, buttons } = formOf(page)
  expect(action).toBe('/oauth/consent')
  const { csrf_token, request, ...rest } = fields
  expect(rest).toEqual({
    client_id,
    scope: 'openid files',
    state: 'xyz',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    redirect_uri: REDIRECT,
    nonce: 'n',
  })
  expect([csrf_token, request]).not.toContain(undefined)
  expect(buttons.map(({ name, value }) => `${name}=${value}`)).toEqual(['decision=deny', 'decision=approve'])
})

test('AUT-11 approval is remembered, and issues one code', async () => {
  const { client_id, browser, page } = await asked()
  await app.events()
  const { code, state } = answerOf(await browser.submit(page, { decision: 'approve' }))
  expect(state).toBe('xyz')
  expect(await codeRow(app, code)).toMatchObject({
    client_id,
    user_id: ada.id,
    scope: 'openid files',
    nonce: 'n',
  })
  expect((await consents()).find(row => row.client_id === client_id)).toMatchObject({
    user_id: ada.id,
    organization_id: 'org_default',
    scopes: ['openid', 'files'],
  })
  expect(await app.events()).toEqual([])
})

test('the fields of the specification suffice', async () => {
  const { browser, page } = await asked()
  const { request: _, nonce: __, ...fields } = formOf(page).fields
  expect(answerOf(await browser.post('/oauth/consent', { ...fields, decision: 'approve' })).code).toBeString()
})

test('AUT-12 denial is reported to the client, and is not remembered', async () => {
  const { client_id, browser, page } = await asked()
  expect(answerOf(await browser.submit(page, { decision: 'deny' }))).toEqual({
    error: 'access_denied',
    error_description: 'The user denied the request, or the client does not admit the user.',
    state: 'xyz',
    iss: app.context.config.url,
  })
  expect((await browser.submit(page, { decision: 'approve' })).status).toBe(400)
  expect((await consents()).some(row => row.client_id === client_id)).toBeFalse()
  expect((await browser.get(authorizeUrl(client_id))).status).toBe(200)
})

describe('max_age passes while the page is open', () => {
  const late = async (decision: string) => {
    const { client_id, browser, page } = await asked({ max_age: '60' })
    expect(page.heading).toStartWith('Allow ')
    app.clock.advance(61 * SECOND)
    await app.events()
    const answer = await browser.submit(page, { decision })
    expect((await consents()).some(row => row.client_id === client_id)).toBeFalse()
    expect(await app.events()).toEqual([])
    return { client_id, browser, answer }
  }

  test('approval: the same user signs in again, and is asked again', async () => {
    const { client_id, browser, answer } = await late('approve')
    const login = await browser.follow(answer)
    expect([login.status, login.heading]).toEqual([200, 'Sign in'])
    expect(formOf(login).fields.username).toBe('ada')
    const again = await signIn(browser, login, 'ada')
    expect(again.heading).toStartWith('Allow ')
    expect(answerOf(await browser.submit(again, { decision: 'approve' })).code).toBeString()
    expect((await consents()).some(row => row.client_id === client_id)).toBeTrue()
  })

  test('denial is reported to the client', async () => {
    expect(answerOf((await late('deny')).answer).error).toBe('access_denied')
  })
})

test('a state with line breaks and NUL survives the form', async () => {
  const state = 'a\nb\r\nc\0d'
  const { browser, page } = await asked({ state })
  const { fields } = formOf(page)
  expect(fields.state).toBe(state)
  const posted = { ...fields, state: 'a\r\nb\r\nc\ufffdd', decision: 'approve' }
  expect(answerOf(await browser.post('/oauth/consent', posted)).state).toBe(state)
})

describe('O-65 the posted fields must equal those of the request', () => {
  const unchanged = async () => {
    const before = await consents()
    return async () => expect(await consents()).toEqual(before)
  }

  test.each([
    ['scope', 'openid files email'],
    ['scope', 'openid'],
    ['scope', ''],
    ['redirect_uri', 'https://evil.example/'],
    ['redirect_uri', ''],
    ['state', 'other'],
    ['state', ''],
    ['client_id', 'trusted'],
    ['client_id', ''],
    ['code_challenge', 'A'.repeat(43)],
    ['code_challenge', ''],
    ['nonce', 'other'],
    ['decision', 'maybe'],
    ['decision', ''],
  ])('%s=%j shows a page', async (name, value) => {
    const { browser, page } = await asked()
    const check = await unchanged()
    const answer = await browser.submit(page, { decision: 'approve', [name]: value })
    expect([answer.status, answer.location]).toEqual([400, undefined])
    await check()
  })

  test('O-40 a repeated field shows a page', async () => {
    const { browser, page } = await asked()
    const check = await unchanged()
    const form = new URLSearchParams({ ...formOf(page).fields, decision: 'approve' })
    for (const extra of ['&scope=openid', '&decision=deny', '&decision=approve'])
      expect((await browser.post('/oauth/consent', form + extra)).status).toBe(400)
    await check()
  })

  test('AUT-10 a form of another site or another session is a 403 page', async () => {
    const { browser, page } = await asked()
    const other = await asked()
    const check = await unchanged()
    const fields = { ...formOf(page).fields, decision: 'approve' }
    expect((await browser.post('/oauth/consent', fields, { origin: 'null' })).status).toBe(403)
    expect((await other.browser.post('/oauth/consent', fields)).status).toBe(403)
    const { csrf_token = '' } = formOf(other.page).fields
    expect((await browser.submit(page, { decision: 'approve', csrf_token })).status).toBe(403)
    await check()
  })

  test('and the genuine form still works, once', async () => {
    const { browser, page } = await asked()
    expect((await browser.submit(page, { decision: 'maybe' })).status).toBe(400)
    const approve = () => browser.submit(page, { decision: 'approve' })
    expect(answerOf(await approve()).code).toBeString()
    for (const again of [await approve(), await browser.submit(page, { decision: 'deny' })])
      expect([again.status, again.heading]).toEqual([400, 'This page has expired'])
  })

  test('fifty approvals at once issue one code', async () => {
    const { page, browser } = await asked()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => browser.submit(page, { decision: 'approve' })),
    )
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
  })

  test('fifty denials at once send one error', async () => {
    const { page, browser } = await asked()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => browser.submit(page, { decision: 'deny' })),
    )
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
  })
})

describe('O-65 approval counts only for the user named on the page', () => {
  const endLogins = (browser: Browser) =>
    app.context.store.write(async tx => {
      await tx.delete(tx.tables.logins)
      browser.cookies.delete('gatehouse_login_8080')
    })

  test('not after a logout', async () => {
    const { page, browser } = await asked()
    await endLogins(browser)
    const answer = await browser.submit(page, { decision: 'approve' })
    expect([answer.status, answer.location]).toEqual([400, undefined])
  })

  test('not after another user has signed in instead', async () => {
    const { client_id, page, browser } = await asked()
    await endLogins(browser)
    await logInTo(browser, 'trusted', 'bob')
    expect((await browser.submit(page, { decision: 'approve' })).status).toBe(400)
    expect((await consents()).some(row => row.client_id === client_id)).toBeFalse()
  })

  test('when another user signs in as well, the approval is still the first user’s', async () => {
    const { page, browser } = await asked()
    await logInTo(browser, 'trusted', 'bob', { prompt: 'login' })
    const { code } = answerOf(await browser.submit(page, { decision: 'approve' }))
    expect((await codeRow(app, code)).user_id).toBe(ada.id)
  })
})

describe('O-66 consent is requested', () => {
  const shows = async (browser: Browser, url: string) => {
    const page = await browser.get(url)
    return page.location === undefined ? page.heading.startsWith('Allow') : answerOf(page).code === undefined
  }

  test('AUT-13 only by a client that requires it', async () => {
    expect(await shows(await loggedIn(), authorizeUrl('trusted'))).toBeFalse()
  })

  test('per user, client and scopes', async () => {
    const { client_id, browser, page } = await asked()
    await browser.submit(page, { decision: 'approve' })
    expect(await shows(browser, authorizeUrl(client_id, { scope: 'openid files' }))).toBeFalse()
    expect(await shows(browser, authorizeUrl(client_id, { scope: 'files' }))).toBeFalse()
    expect(await shows(browser, authorizeUrl(client_id, { scope: 'openid email' }))).toBeTrue()
    expect(await shows(await loggedIn('bob'), authorizeUrl(client_id))).toBeTrue()
    expect(await shows(browser, authorizeUrl(await newClient()))).toBeTrue()
  })

  test('and adds up over scopes', async () => {
    const { client_id, browser, page } = await asked()
    await browser.submit(page, { decision: 'approve' })
    const more = await browser.get(authorizeUrl(client_id, { scope: 'email' }))
    await browser.submit(more, { decision: 'approve' })
    expect(await shows(browser, authorizeUrl(client_id, { scope: 'openid files email' }))).toBeFalse()
  })

  test('of each user in a shared browser', async () => {
    const { client_id, browser, page } = await asked()
    await browser.submit(page, { decision: 'approve' })
    await logInTo(browser, 'trusted', 'bob', { prompt: 'login' })
    expect(await shows(browser, authorizeUrl(client_id))).toBeTrue()
    const consent = await browser.get(authorizeUrl(client_id))
    expect(consent.html).toContain(bob.email)
  })

  test('every time by a public client with a private-use scheme', async () => {
    const redirect_uri = 'com.example.app:/callback'
    const client_id = await newClient({
      type: 'public',
      token_endpoint_auth_method: 'none',
      consent_required: false,
      redirect_uris: [redirect_uri, REDIRECT],
    })
    const browser = await loggedIn()
    for (let i = 0; i < 2; i++) {
      const page = await browser.get(authorizeUrl(client_id, { redirect_uri }))
      expect((await browser.submit(page, { decision: 'approve' })).location).toStartWith(
        `${redirect_uri}?code=`,
      )
    }
    expect(answerOf(await browser.get(authorizeUrl(client_id, { redirect_uri, prompt: 'none' }))).error).toBe(
      'consent_required',
    )
    expect(await shows(browser, authorizeUrl(client_id))).toBeFalse()
  })
})

test('consent follows the login of a flow', async () => {
  const browser = openBrowser(app)
  const client_id = await newClient()
  const page = await signIn(browser, await browser.get(authorizeUrl(client_id)), 'ada', PASSWORD)
  expect(page.url).toStartWith('/oauth/consent?request=')
  expect((await browser.get(page.url)).html).toContain(ada.email)
  expect(answerOf(await browser.submit(page, { decision: 'approve' })).code).toBeString()
})

describe('O-65 approval counts only for the scopes on the page', () => {
  const api = (client_id: string, name: string, role: string | null) =>
    create(app, '/apis', {
      identifier: `https://${client_id}.example`,
      name,
      scopes: [
        { name: 'read', texts: { en: 'May read' }, role: null },
        { name: 'wipe', texts: { en: 'May wipe' }, role },
      ],
      clients: [{ client_id, scopes: ['read', 'wipe'] }],
    })
  const opened = async () => {
    const client_id = await newClient()
    const { id } = await api(client_id, 'Weather', 'boss')
    const browser = await loggedIn()
    const request = { scope: 'openid read wipe', resource: `https://${client_id}.example` }
    const page = await browser.get(authorizeUrl(client_id, request))
    expect([page.html.includes('May read'), page.html.includes('May wipe')]).toEqual([true, false])
    const granted = async () =>
      (await consents()).flatMap(row => (row.client_id === client_id ? [row.scopes] : []))
    /** Approves, and returns the page that is shown instead of a code. */
    const refused = async () => {
      await app.events()
      const again = await browser.follow(await browser.submit(page, { decision: 'approve' }))
      expect([again.heading, again.html.includes('May wipe')]).toEqual([page.heading, true])
      expect([await granted(), await app.events()]).toEqual([[], []])
      return again
    }
    return { id, client_id, browser, page, granted, refused }
  }

  test('not for a scope of a role that the user got meanwhile', async () => {
    const { id, browser, granted, refused } = await opened()
    await app.admin('PUT', `/users/${ada.id}`, { roles: ['user', 'boss'] })
    const again = await refused()
    const { code } = answerOf(await browser.submit(again, { decision: 'approve' }))
    expect((await codeRow(app, code)).scope).toBe('openid read wipe')
    expect(await granted()).toEqual([[id, 'openid', `${id}/read`, `${id}/wipe`]])
    expect(await app.events()).toEqual([])
    await app.admin('PUT', `/users/${ada.id}`, { roles: ['user'] })
  })

  test('not for another API with the same identifier; a denial is still reported', async () => {
    const { id, client_id, browser, page, granted, refused } = await opened()
    await app.admin('DELETE', `/apis/${id}`)
    await api(client_id, 'Payroll', null)
    expect((await refused()).html).toContain('Payroll')
    expect(answerOf(await browser.submit(page, { decision: 'deny' })).error).toBe('access_denied')
    expect([await granted(), await app.events()]).toEqual([[], []])
  })
})

describe('rights taken away while the user decides are not granted', () => {
  test.each([
    ['the redirect URI', { redirect_uris: ['https://new.example/'] }],
    ['a scope', { scopes: ['openid'] }],
    ['the grant', { grant_types: ['client_credentials'] }],
  ])('%s', async (_, change) => {
    const { client_id, browser, page } = await asked()
    expect((await app.admin('PUT', `/clients/${client_id}`, change)).status).toBe(200)
    const answer = await browser.submit(page, { decision: 'approve' })
    expect([answer.status, answer.location]).toEqual([400, undefined])
  })

  test('the client', async () => {
    const { client_id, browser, page } = await asked()
    expect((await app.admin('DELETE', `/clients/${client_id}`)).status).toBe(204)
    expect((await browser.submit(page, { decision: 'approve' })).location).toBeUndefined()
  })
})

test('H-55 consent to `openid` names the claims in the tokens: name, user name and e-mail address', async () => {
  await addClient(app, 'tells', { consent_required: true })
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl('tells')), 'ada')
  expect(page.html).toContain('Confirm who you are, and see your name, username and email address')
})
