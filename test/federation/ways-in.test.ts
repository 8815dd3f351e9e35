import { describe, expect, test } from 'bun:test'
import { openCore } from '#src/operations/core.ts'
import { BASE, type Json, openApp, type TestApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser } from '#test/support/browser.ts'
import {
  addClient,
  addOrganization,
  authorizeUrl,
  codeRow,
  REDIRECT,
  VERIFIER,
} from '#test/support/people.ts'
import { openBeside } from '#test/support/store.ts'
import { claimsOf } from '#test/support/tokens.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, atUpstream, goThrough, ISSUER, pathOf } from './upstream.ts'

const { app, upstream, honest, client_secret, fresh, somebody, entry, refusal } = await startLinking()

test('a stored upstream request reveals no handle, state or user', async () => {
  const browser = fresh()
  const login = await browser.get(authorizeUrl('app'))
  const handle = login.forms[0]?.fields.request ?? ''
  const away = await browser.get(`/oauth/social/asking?request=${handle}`)
  const { sub, email } = somebody()
  const asked = await browser.follow(
    await browser.get(pathOf(await atUpstream(upstream, away.location ?? '', { sub, email, name: '' }))),
  )
  expect(asked.heading).toBe('One more thing')
  const rows = await app.context.store.read(async q => q.select().from(q.tables.upstream_requests))
  expect(rows.length).toBeGreaterThan(0)
  const stored = rows.map(row => JSON.stringify(row) + row.sealed.toString('latin1')).join()
  for (const secret of [handle, new URL(away.location ?? '').searchParams.get('state') ?? '', sub])
    expect(stored).not.toContain(secret)
})

describe('starting a login', () => {
  test('FRM-07, FED-02 an upstream login that began with response_mode=form_post ends with a form post', async () => {
    for (const start of ['/oauth/authorize', '/oauth/social/asking']) {
      const browser = fresh()
      const url = authorizeUrl('app', { response_mode: 'form_post' })
      const entered = await browser.get(url.replace('/oauth/authorize', start))
      const away =
        entered.location ?? /href="(\/oauth\/social\/asking\?request=[^"]+)"/.exec(entered.html)?.[1] ?? ''
      const location = entered.location ?? (await browser.get(away)).location ?? ''
      const back = await atUpstream(upstream, location, somebody())
      const { action, fields } = formOf(await browser.follow(await browser.get(pathOf(back))))
      expect([action, Object.keys(fields)]).toEqual([REDIRECT, ['code', 'state', 'iss']])
    }
  })

  test('FED-02 from the login page, within the authorization; the exchange records the login', async () => {
    const browser = fresh()
    const login = await browser.get(authorizeUrl('app', { nonce: 'n-1', login_hint: 'hint@example.com' }))
    const href = /href="(\/oauth\/social\/asking\?request=[^"]+)"/.exec(login.html)?.[1] ?? ''
    const away = await browser.get(href)
    const sent = new URL(away.location ?? '').searchParams
    expect(Object.fromEntries(sent)).toMatchObject({
      response_type: 'code',
      client_id: 'gatehouse-at-upstream',
      redirect_uri: 'http://localhost:8080/oauth/social/asking/callback',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      login_hint: 'hint@example.com',
    })
    expect(away.headers.get('referrer-policy')).toBe('no-referrer')
    const { sub, email } = somebody()
    const page = await browser.follow(
      await browser.get(pathOf(await atUpstream(upstream, away.location ?? '', { sub, email }))),
    )
    expect(answerOf(page)).toMatchObject({ state: 'xyz', iss: 'http://localhost:8080' })
    await app.events()
    const form = {
      grant_type: 'authorization_code',
      code: answerOf(page).code ?? '',
      redirect_uri: REDIRECT,
      client_id: 'app',
      client_secret,
      code_verifier: VERIFIER,
    }
    const tokens = (await (
      await app.call('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })
    ).json()) as Json
    expect(claimsOf(tokens.id_token)).toMatchObject({ nonce: 'n-1', email, acr: '1', amr: ['fed'] })
    expect((await app.events()).map(({ type }) => type).sort()).toEqual([
      'session.created',
      'token.issued',
      'user.login',
    ])
  })

  test('FED-07 without an authorization or its parameters: ends on the account page', async () => {
    await app.events()
    const page = await goThrough(fresh(), upstream, '/oauth/social/asking', somebody())
    expect(page.heading).toBe('Your account')
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.created',
      'user.updated',
      'user.login',
    ])
  })

  test('wrong parameters are refused as at the authorization endpoint', async () => {
    const browser = fresh()
    expect((await browser.get(entry('asking').replace('client_id=app', 'client_id=nobody'))).status).toBe(400)
    expect(
      (await browser.get(entry('asking').replace('app.example', 'evil.example'))).location,
    ).toBeUndefined()
    expect(answerOf(await browser.get(`${entry('asking')}&response_mode=fragment`)).error).toBe(
      'invalid_request',
    )
    expect(answerOf(await browser.get(`${entry('asking')}&prompt=none`)).error).toBe('login_required')
  })

  test('O-48 prompt=login and max_age ask the provider to reauthenticate', async () => {
    const promptOf = async (more: string) =>
      new URL((await fresh().get(entry('asking') + more)).location ?? '').searchParams.get('prompt')
    expect([
      await promptOf(''),
      await promptOf('&prompt=login'),
      await promptOf('&max_age=60'),
      await promptOf('&prompt=select_account'),
    ]).toEqual([null, 'login', 'login', 'select_account'])
  })

  test('O-48 a login is refused when the provider was asked to reauthenticate and reports that it did not', async () => {
    const who = somebody()
    const ago = (seconds: number) => {
      upstream.twist = ({ claims }) => Object.assign(claims, { auth_time: Number(claims.iat) - seconds })
    }
    const ends = async (more: string) =>
      (await goThrough(fresh(), upstream, entry('asking') + more, who)).status
    ago(120)
    expect([await ends('&prompt=login'), await ends('&max_age=3600'), await ends('')]).toEqual([
      400, 400, 302,
    ])
    expect((await refusal()).map(([, , reason]) => reason)).toContain('old_authentication')
    ago(30)
    expect(await ends('&prompt=login')).toBe(302)
    honest()
    // Some providers never send the time of authentication.
    upstream.twist = ({ claims }) => void delete claims.auth_time
    expect(await ends('&prompt=login')).toBe(302)
    honest()
    const away = new URL((await fresh().get(`${entry('asking')}&prompt=login`)).location ?? '')
    expect(away.searchParams.get('max_age')).toBe('0')
  })

  test('moving the development clock before or during a login breaks nothing: provider times are compared with real time', async () => {
    for (const ms of [20 * 60_000, -20 * 60_000, 400 * 86_400_000]) {
      if (Math.abs(ms) > 86_400_000) app.clock.advance(ms)
      const browser = fresh()
      const away = await browser.get(`${entry('asking')}&prompt=login`)
      if (Math.abs(ms) < 86_400_000) app.clock.advance(ms)
      const back = pathOf(await atUpstream(upstream, away.location ?? '', somebody()))
      expect(answerOf(await browser.follow(await browser.get(back))).code).toBeString()
    }
  })

  test('FED-05 several upstream requests of one browser all complete, in any order', async () => {
    const browser = fresh()
    const who = somebody()
    const backs: string[] = []
    for (const state of ['one', 'two', 'three']) {
      const away = await browser.get(entry('asking').replace('state=xyz', `state=${state}`))
      backs.push(pathOf(await atUpstream(upstream, away.location ?? '', who)))
    }
    const states: (string | undefined)[] = []
    for (const back of backs.reverse())
      states.push(answerOf(await browser.follow(await browser.get(back))).state)
    expect(states).toEqual(['three', 'two', 'one'])
  })

  test('O-32 form_post: the POST is stored and replayed as a same-site GET that sends the cookie', async () => {
    await addProvider(app, 'posting', { response_mode: 'form_post', client_id: 'posting' })
    const browser = fresh()
    const away = await browser.get(entry('posting'))
    expect(new URL(away.location ?? '').searchParams.get('response_mode')).toBe('form_post')
    const location = (away.location ?? '').replace('response_mode=form_post', '')
    const body = new URL(await atUpstream(upstream, location, somebody())).search.slice(1)
    const crossSite = openBrowser(app, { ip: '203.0.113.9' })
    const stored = await crossSite.post('/oauth/social/posting/callback', body, { origin: ISSUER })
    expect(stored.status).toBe(303)
    expect(stored.location).toMatch(/^\/oauth\/social\/posting\/callback\/replay\?handle=[\w-]{43}$/)
    expect(stored.headers.getSetCookie()).toEqual([])
    expect((await browser.get((stored.location ?? '').replace('posting', 'asking'))).status).toBe(400)
    const page = await browser.follow(stored)
    expect(answerOf(page).code).toBeString()
    expect((await browser.get(stored.location ?? '')).status).toBe(400)
  })

  test('a client with cross_organization uses the provider of another organization', async () => {
    const { id } = await addOrganization(app, 'acme')
    await addClient(app, 'bridge', { capabilities: ['cross_organization'] })
    await addProvider(app, 'acme-id', { organization_id: id, client_id: 'acme' })
    const path = authorizeUrl('bridge', { organization_id: id }).replace(
      '/oauth/authorize',
      '/oauth/social/acme-id',
    )
    const page = await goThrough(fresh(), upstream, path, somebody())
    expect((await codeRow(app, answerOf(page).code)).organization_id).toBe(id)
    // M-03: a provider of one organization cannot sign in users of another.
    expect((await fresh().get(path.replace(id, 'org_default'))).status).toBe(404)
    expect(
      (await fresh().get(authorizeUrl('bridge').replace('/oauth/authorize', '/oauth/social/acme-id'))).status,
    ).toBe(404)
  })

  test('R-24 a pending upstream request and the provider metadata survive a restart', async () => {
    const browser = fresh()
    const away = await browser.get(entry('asking'))
    const back = pathOf(await atUpstream(upstream, away.location ?? '', { ...somebody(), name: '' }))
    const base = app.context
    const store = await openBeside((base.store as typeof base.store & { path: string }).path)
    const restarted = await openApp(openCore({ ...base, store }))
    const call: TestApp['call'] = async (path, init) =>
      restarted.fetch(new Request(new URL(path, BASE), { redirect: 'manual', ...init }))
    const elsewhere = openBrowser({ call, context: restarted.context })
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value)
    const asked = await elsewhere.follow(await elsewhere.get(back))
    expect(asked.heading).toBe('One more thing')
    await store.close()
    const page = await browser.follow(await browser.submit(asked, { first_name: 'Robin' }))
    expect(answerOf(page).code).toBeString()
  })
})
