import { describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { rotateKeys } from '#src/tokens/rotation.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo, signIn } from '#test/support/people.ts'
import { bearer, claimsOf, get, grantTokens, redeem, refresh } from '#test/support/tokens.ts'

const GOODBYE = 'https://app.example/goodbye?from=logout'

const app = await startApp()
const alice = await addUser(app, 'alice')
const bob = await addUser(app, 'bob')
const client = await addClient(app, 'shop', { post_logout_redirect_uris: [GOODBYE] })
const other = await addClient(app, 'other')

const logoutUrl = (parameters: Record<string, string>) => `/oauth/logout?${new URLSearchParams(parameters)}`
const events = async () =>
  (await app.events()).map(({ type, actor_id, target_id, metadata }) => ({
    type,
    actor_id,
    target_id,
    metadata,
  }))

/** Returns a browser in which these users are signed in to the shop, and the last user's tokens. */
const shopping = async (...users: string[]) => {
  const browser = openBrowser(app)
  let tokens: Json
  for (const user of users) {
    const { code = '' } = await logInTo(browser, 'shop', user, { prompt: 'login' })
    tokens = (await redeem(app, client, code)).body
  }
  await app.events()
  return { browser, tokens }
}
const sessionOf = (tokens: Json) => `sess_${claimsOf(tokens.access_token).sid}`
const revoked = (user: Json, target_id: string, client_id = 'shop') => ({
  type: 'session.revoked',
  actor_id: user.id,
  target_id,
  metadata: { user_id: user.id, client_id, reason: 'logout' },
})
const loggedOut = (user: Json) => ({
  type: 'user.logout',
  actor_id: user.id,
  target_id: user.id,
  metadata: {},
})
const isAskedToLogIn = async (browser: ReturnType<typeof openBrowser>) => {
  const page = await browser.follow(await browser.get(authorizeUrl('shop', { prompt: 'none' })))
  return page.location?.includes('error=login_required')
}

describe('with a valid id_token_hint', () => {
  test('AUT-20 the login and its sessions end at once, with their events and no others, and the browser is redirected', async () => {
    const { browser, tokens } = await shopping('alice')
    const { code = '' } = await browserCode(browser, 'other')
    const { body: second } = await redeem(app, other, code)
    await app.events()
    const page = await browser.get(
      logoutUrl({ id_token_hint: tokens.id_token, post_logout_redirect_uri: GOODBYE, state: 'a b&c' }),
    )
    expect(page.status).toBe(303)
    expect(page.location).toBe(`${GOODBYE}&state=a%20b%26c`)
    expect(await events()).toEqual([
      loggedOut(alice),
      ...[revoked(alice, sessionOf(tokens)), revoked(alice, sessionOf(second), 'other')],
    ])
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(400)
    for (const { access_token } of [tokens, second])
      expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(401)
    expect([...browser.cookies.keys()].filter(name => name.includes('_login'))).toEqual([])
    expect(await isAskedToLogIn(browser)).toBe(true)
  })

  const browserCode = async (browser: ReturnType<typeof openBrowser>, client_id: string) => {
    const page = await browser.follow(await browser.get(authorizeUrl(client_id)))
    return Object.fromEntries(new URL(page.location ?? '').searchParams)
  }

  test('other users of the same browser stay signed in', async () => {
    const { browser, tokens } = await shopping('alice', 'bob')
    await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
    expect(await events()).toEqual([loggedOut(bob), revoked(bob, sessionOf(tokens))])
    const page = await browser.follow(await browser.get(authorizeUrl('shop', { prompt: 'none' })))
    expect(page.location).toContain('code=')
  })

  test('an expired hint is accepted, and so is a hint whose session the client has revoked', async () => {
    const { browser, tokens } = await shopping('alice')
    app.clock.advance(DAY - 1)
    await app.call('/oauth/revoke', {
      method: 'POST',
      body: new URLSearchParams({ token: tokens.refresh_token }),
    })
    await app.events()
    await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
    expect(await events()).toEqual([loggedOut(alice)])
  })

  test('O-50 a hint whose key has left the key set ends its session', async () => {
    const tokens = await grantTokens(app, client, alice)
    await rotateKeys(app.context)
    app.clock.advance(DAY)
    const { body } = await refresh(app, client, tokens.refresh_token)
    app.clock.advance(HOUR)
    await app.events()
    const sent = { id_token_hint: tokens.id_token, post_logout_redirect_uri: GOODBYE }
    expect((await openBrowser(app).get(logoutUrl(sent))).location).toBe(GOODBYE)
    expect(await events()).toEqual([revoked(alice, sessionOf(tokens))])
    expect((await refresh(app, client, body.refresh_token)).status).toBe(400)
  })

  test('H-34 a hint from another browser, or without a browser, ends its own session and nothing else', async () => {
    const { browser, tokens } = await shopping('alice')
    const { code = '' } = await browserCode(browser, 'other')
    const { body: second } = await redeem(app, other, code)
    await app.events()
    const url = logoutUrl({ id_token_hint: tokens.id_token, post_logout_redirect_uri: GOODBYE })
    expect((await app.call(url)).headers.get('location')).toBe(GOODBYE)
    expect(await events()).toEqual([revoked(alice, sessionOf(tokens))])
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(400)
    const statuses = [tokens, second].map(async ({ access_token }) => {
      return (await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status
    })
    expect(await Promise.all(statuses)).toEqual([401, 200])
    expect((await refresh(app, other, second.refresh_token)).status).toBe(200)
    expect(await isAskedToLogIn(browser)).toBe(false)
    await app.events()
    expect((await app.call(url)).status).toBe(303)
    expect(await events()).toEqual([])
  })

  test('H-34 asks when another user, or the same user with another login, is signed in', async () => {
    const { browser: elsewhere, tokens } = await shopping('alice')
    for (const user of [alice, bob]) {
      const { browser, tokens: own } = await shopping(user.username)
      const page = await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
      expect([page.status, page.forms[0]?.action]).toEqual([200, '/oauth/logout'])
      expect(await events()).toEqual(user === alice ? [revoked(alice, sessionOf(tokens))] : [])
      const [last] = (await app.admin('GET', '/events?type=session.revoked&limit=1')).body.data
      expect(last.actor_email).toBe(alice.email)
      await app.events()
      expect(await isAskedToLogIn(browser)).toBe(false)
      await browser.submit(page)
      expect(await events()).toEqual([loggedOut(user), revoked(user, sessionOf(own))])
    }
    expect(await isAskedToLogIn(elsewhere)).toBe(false)
  })

  const sent = { post_logout_redirect_uri: GOODBYE, state: 's' }

  test('O-68 after the confirmation the browser returns to the client that only the hint names', async () => {
    const { tokens } = await shopping('alice')
    const { browser, tokens: own } = await shopping('bob')
    const page = await browser.get(logoutUrl({ id_token_hint: tokens.id_token, ...sent }))
    expect(page.forms[0]?.fields).toMatchObject({ client_id: 'shop', ...sent })
    expect(await events()).toEqual([revoked(alice, sessionOf(tokens))])
    expect((await browser.submit(page)).location).toBe(`${GOODBYE}&state=s`)
    expect(await events()).toEqual([loggedOut(bob), revoked(bob, sessionOf(own))])
    expect(await isAskedToLogIn(browser)).toBe(true)
  })

  test('O-68 a hint that is not verified, or names another client, leads to no URI of the shop', async () => {
    const { tokens } = await shopping('alice')
    const { id_token } = await grantTokens(app, other, alice)
    const [header, , signature] = tokens.id_token.split('.')
    const claims = Buffer.from(JSON.stringify({ ...claimsOf(id_token), aud: 'shop' })).toString('base64url')
    const hints: [string, string | undefined][] = [
      [`${header}.${claims}.${signature}`, undefined],
      [tokens.access_token, undefined],
      [id_token, 'other'],
    ]
    for (const [id_token_hint, client_id] of hints) {
      const { browser, tokens: own } = await shopping('bob')
      const page = await browser.get(logoutUrl({ id_token_hint, ...sent }))
      expect(page.forms[0]?.fields.client_id).toBe(client_id)
      await app.events()
      const done = await browser.submit(page)
      expect([done.status, done.location]).toEqual([200, undefined])
      expect(await events()).toEqual([loggedOut(bob), revoked(bob, sessionOf(own))])
    }
  })

  test('H-34 a hint from before a later login of this browser asks, and a hint of another user’s session ends nothing', async () => {
    const { browser, tokens } = await shopping('alice')
    await browser.submit(await browser.get('/oauth/logout'))
    await signIn(browser, await browser.get(authorizeUrl('shop')), 'alice')
    await app.events()
    const page = await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
    expect(page.forms).toHaveLength(1)
    expect(await isAskedToLogIn(browser)).toBe(false)
    expect(await events()).toEqual([])
  })

  test('a second request ends nothing and records nothing', async () => {
    const { browser, tokens } = await shopping('alice')
    await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
    await app.events()
    expect((await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))).status).toBe(200)
    expect(await events()).toEqual([])
  })

  test('a request that overtakes another leaves nothing for it to end or record', async () => {
    const { browser, tokens } = await shopping('alice')
    const url = logoutUrl({ id_token_hint: tokens.id_token })
    const { store } = app.context
    const { write } = store
    store.write = async body => {
      store.write = write
      expect((await browser.get(url)).status).toBe(200)
      return write(body)
    }
    expect((await browser.get(url)).status).toBe(200)
    expect(await events()).toEqual([loggedOut(alice), revoked(alice, sessionOf(tokens))])
  })

  test('a form from the application’s site is replayed as a GET', async () => {
    const { browser, tokens } = await shopping('alice')
    const form = { id_token_hint: tokens.id_token, post_logout_redirect_uri: GOODBYE, junk: 'x' }
    const posted = await openBrowser(app).post('/oauth/logout', form, { origin: 'https://app.example' })
    expect(posted.status).toBe(303)
    expect(posted.location).not.toContain('junk')
    expect(await events()).toEqual([])
    const page = await browser.get(posted.location ?? '')
    expect(page.location).toBe(GOODBYE)
    expect(await events()).toEqual([loggedOut(alice), revoked(alice, sessionOf(tokens))])
  })
})

describe('asks without a valid hint', () => {
  const hints = async (): Promise<Record<string, Record<string, string>>> => {
    const { id_token, access_token } = await grantTokens(app, other, alice)
    await app.events()
    return {
      none: {},
      garbage: { id_token_hint: 'x.y.z' },
      'of another client than the named one': { id_token_hint: id_token, client_id: 'shop' },
      'an access token': { id_token_hint: access_token },
    }
  }

  test('AUT-19 nothing ends before the confirmation; then everything in this browser ends', async () => {
    for (const [what, hint] of Object.entries(await hints())) {
      const { browser, tokens } = await shopping('bob')
      const page = await browser.get(
        logoutUrl({ ...hint, client_id: 'shop', post_logout_redirect_uri: GOODBYE, state: 's' }),
      )
      expect([what, page.status, page.forms.length]).toEqual([what, 200, 1])
      expect(page.html).toContain('bob')
      expect(await events()).toEqual([])
      const done = await browser.submit(page)
      expect(done.location).toBe(`${GOODBYE}&state=s`)
      expect(await events()).toEqual([loggedOut(bob), revoked(bob, sessionOf(tokens))])
      expect(await isAskedToLogIn(browser)).toBe(true)
    }
  })

  test('O-28 a confirmation without its token, with another browser’s, or from another origin is refused', async () => {
    const { browser } = await shopping('alice')
    const stranger = (await shopping('bob')).browser
    const { fields = {} } = (await browser.get('/oauth/logout')).forms[0] ?? {}
    const theirs = (await stranger.get('/oauth/logout')).forms[0]?.fields ?? {}
    expect((await browser.post('/oauth/logout', { csrf_token: 'x.y' })).status).toBe(403)
    expect((await browser.post('/oauth/logout', theirs)).status).toBe(403)
    for (const origin of ['https://evil.example', 'null'])
      expect((await browser.post('/oauth/logout', fields, { origin })).status).toBe(403)
    expect(await events()).toEqual([])
  })

  test('a confirmation that is sent again after "Back" leads to the client again, and ends nothing', async () => {
    const { browser } = await shopping('alice')
    const sent = { client_id: 'shop', post_logout_redirect_uri: GOODBYE, state: 's' }
    const page = await browser.get(logoutUrl(sent))
    await browser.submit(page)
    await app.events()
    const again = await browser.submit(page)
    expect([again.status, again.location]).toEqual([303, logoutUrl(sent)])
    expect((await browser.get(logoutUrl(sent))).location).toBe(`${GOODBYE}&state=s`)
    expect(await events()).toEqual([])
  })

  test('a browser without a login gets the signed-out page without a question', async () => {
    const page = await openBrowser(app).get('/oauth/logout')
    expect([page.status, page.forms.length]).toEqual([200, 0])
    expect(await events()).toEqual([])
  })
})

describe('O-68 post_logout_redirect_uri', () => {
  test('O-68 only an exactly registered URI of the client is followed; any other shows a page', async () => {
    const bad = [
      'javascript:alert(1)',
      '//evil.example',
      'https://evil.example',
      `${GOODBYE}&x=1`,
      GOODBYE.toUpperCase(),
      'https://app.example/goodbye',
      `${GOODBYE}#x`,
    ]
    for (const post_logout_redirect_uri of bad) {
      const page = await openBrowser(app).get(logoutUrl({ client_id: 'shop', post_logout_redirect_uri }))
      expect([post_logout_redirect_uri, page.status, page.location]).toEqual([
        post_logout_redirect_uri,
        200,
        undefined,
      ])
      expect(page.html).not.toContain('evil')
    }
    for (const client_id of ['other', 'nobody', '']) {
      const page = await openBrowser(app).get(logoutUrl({ client_id, post_logout_redirect_uri: GOODBYE }))
      expect([client_id, page.status]).toEqual([client_id, 200])
    }
  })

  test('H-56 the page says that the URI is not registered, and only then', async () => {
    const sentence = 'The address to go back to is not registered for this application.'
    const shown = async (query: Record<string, string>) =>
      (await openBrowser(app).get(logoutUrl(query))).html.includes(sentence)
    const asked = { client_id: 'shop', post_logout_redirect_uri: 'https://evil.example' }
    expect([await shown(asked), await shown({ client_id: 'shop' })]).toEqual([true, false])
  })

  test('O-40 a repeated parameter shows a page with status 400', async () => {
    expect((await openBrowser(app).get('/oauth/logout?client_id=shop&client_id=shop')).status).toBe(400)
  })
})

describe('H-40 the theme of the sign-out page', () => {
  const css = (name: string) => `.brand { --of: ${name} }`
  const sheetsOf = (html: string) =>
    [...html.matchAll(/<link rel="stylesheet" href="(\/assets\/organizations\/[^"]+)">/g)].map(
      ([, url]) => url,
    )
  const tenant = async (slug: string) => {
    const { id, settings } = await addOrganization(app, slug, { settings: { custom_css: css(slug) } })
    await addClient(app, `web-${slug}`, { organization_id: id })
    await addUser(app, `user-${slug}`, { organization_id: id })
    return { sheet: settings.custom_css }
  }
  const logoutOf = (client_id: string) => `/oauth/logout?client_id=${client_id}`

  test('H-40 is that of the signed-in user’s organization, not of the client in the request', async () => {
    const [own] = [await tenant('own'), await tenant('evil')]
    const browser = openBrowser(app)
    await logInTo(browser, 'web-own', 'user-own')
    const page = await browser.get(logoutOf('web-evil'))
    expect([sheetsOf(page.html), page.forms.length]).toEqual([[own.sheet], 1])
    const done = await browser.submit(page)
    expect([sheetsOf(done.html), done.forms.length]).toEqual([[own.sheet], 0])
  })

  test('H-40 is the default organization’s without a login, or with logins in several organizations', async () => {
    await Promise.all([tenant('first'), tenant('second')])
    const browser = openBrowser(app)
    expect(sheetsOf((await browser.get(logoutOf('web-first'))).html)).toEqual([])
    await logInTo(browser, 'web-first', 'user-first')
    await logInTo(browser, 'web-second', 'user-second')
    const page = await browser.get(logoutOf('web-second'))
    expect([sheetsOf(page.html), page.forms.length]).toEqual([[], 1])
  })
})

test('PAG-64 the page leads back to the application that an ID token names, and to no other', async () => {
  const linksOf = ({ html }: { html: string }) =>
    [...html.matchAll(/<a class="button (\w+)" href="([^"]*)">([^<]*)/g)].map(([, ...link]) => link)
  const { browser, tokens } = await shopping('alice')
  const named = await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
  expect(linksOf(named)).toEqual([
    ['primary', 'https://app.example/', 'Back to The shop'],
    ['quiet', '/account?organization=default', 'Sign in again'],
  ])
  for (const query of [{ client_id: 'shop' }, { client_id: 'shop', id_token_hint: 'x.y.z' }])
    expect(linksOf(await browser.get(logoutUrl(query)))).toEqual([
      ['primary', '/account?organization=default', 'Sign in again'],
    ])
})

test('signing in again after a logout is a fresh login', async () => {
  const { browser, tokens } = await shopping('alice')
  await browser.get(logoutUrl({ id_token_hint: tokens.id_token }))
  const page = await signIn(browser, await browser.get(authorizeUrl('shop')), 'alice')
  expect(page.location).toContain('code=')
})

test('PAG-64 the page leads back to the application that an ID token names, and to no other', async () => {
  const { browser, tokens } = await shopping('alice')
  const html = async (parameters: Record<string, string>) => (await browser.get(logoutUrl(parameters))).html
  const named = await html({ id_token_hint: tokens.id_token })
  expect(named).toContain('<a class="button primary" href="https://app.example/">Back to The shop</a>')
  expect(named).toContain('href="/account?organization=default"')
  const unnamed = await html({ client_id: 'shop' })
  expect(unnamed).not.toContain('https://app.example/')
  expect(unnamed).toContain('href="/account?organization=default"')
})
