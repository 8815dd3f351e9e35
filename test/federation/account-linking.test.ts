import { describe, expect, spyOn, test } from 'bun:test'
import { createApp } from '#src/app.ts'
import { setPassword } from '#src/directory/users/store.ts'
import { baseName } from '#src/federation/provisioning.ts'
import { openCore } from '#src/operations/core.ts'
import { removals } from '#src/operations/sweep-store.ts'
import { BASE, type Json, type TestApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { codeOf, enrolPasskey, enrolTotp, openEnrolment } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  PASSWORD,
  REDIRECT,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { openBeside } from '#test/support/store.ts'
import { claimsOf } from '#test/support/tokens.ts'
import {
  addProvider,
  atUpstream,
  goThrough,
  ISSUER,
  pathOf,
  type Somebody,
  startFederated,
} from './upstream.ts'

const { app, upstream, honest } = await startFederated()
const { client_secret } = await addClient(app, 'app')
const asking = await addProvider(app, 'asking')
const trusted = await addProvider(app, 'trusted', { trust_email: true, client_id: 'trusted' })
await addProvider(app, 'closed', { allow_registration: false, client_id: 'closed' })
await create(app, '/roles', { name: 'reader', permissions: ['users:read'] })

let made = 0
/** Each from an address of its own, and a person of their own. */
const fresh = (): Browser => openBrowser(app, { ip: `198.51.100.${made++ & 255}` })
const somebody = (): Required<Pick<Somebody, 'sub' | 'email'>> => {
  const sub = `person-${made++}`
  return { sub, email: `${sub}@example.com` }
}

const entry = (alias: string): string =>
  authorizeUrl('app').replace('/oauth/authorize', `/oauth/social/${alias}`)

const usersBy = async (email: string): Promise<Json[]> =>
  (await app.admin('GET', `/users?search=${encodeURIComponent(email)}`)).body.data

const accounts = () => app.context.store.read(async q => q.select().from(q.tables.external_accounts))
const accountsOf = async (user_id: string) => (await accounts()).filter(row => row.user_id === user_id)

/** Returns the user id of the client's authorization code. */
const whoIs = async (page: Page): Promise<string> => {
  const { code } = answerOf(page)
  return (await codeRow(app, code)).user_id
}

const refusal = async (): Promise<Json[]> =>
  (await app.events()).map(({ type, target_id, metadata }) => [
    type,
    target_id,
    metadata.failure_reason ?? metadata,
  ])

describe('somebody new', () => {
  test('becomes a user with the default roles, linked by the subject', async () => {
    const { sub, email } = somebody()
    await app.events()
    const page = await goThrough(fresh(), upstream, entry('asking'), { sub, email, name: 'Robin van Dam' })
    const id = await whoIs(page)
    const {
      created_at: _,
      updated_at: __,
      last_login: ___,
      ...user
    } = (await app.admin('GET', `/users/${id}`)).body
    expect(user).toEqual({
      id,
      username: sub,
      email,
      first_name: 'Robin',
      last_name: 'van Dam',
      enabled: true,
      email_verified: false,
      organization_id: 'org_default',
      roles: ['user'],
      attributes: {},
    })
    expect(await accountsOf(id)).toMatchObject([{ provider_id: asking.id, subject: sub, label: email }])
    expect(await app.events()).toEqual([
      {
        type: 'user.created',
        actor_id: null,
        target_id: id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: {},
      },
    ])
  })

  test('and is the same user at the second arrival, whatever the address by then', async () => {
    const { sub, email } = somebody()
    const id = await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub, email }))
    await app.events()
    const again = await goThrough(fresh(), upstream, entry('asking'), { sub, email: 'moved@example.com' })
    expect(await whoIs(again)).toBe(id)
    expect(await app.events()).toEqual([])
    expect((await usersBy('moved@example.com')).length).toBe(0)
  })

  test('has a verified address only when the provider is trusted in that', async () => {
    for (const [alias, said, email_verified] of [
      ['asking', 'true', false],
      ['trusted', 'true', true],
      ['trusted', 'false', false],
    ] as const) {
      const { sub, email } = somebody()
      await goThrough(fresh(), upstream, entry(alias), { sub, email, email_verified: said })
      expect(await usersBy(email)).toMatchObject([{ email_verified }])
    }
  })

  test('gets a name of their own when theirs is taken', async () => {
    const names: string[] = []
    for (let n = 0; n < 3; n++) {
      const { sub } = somebody()
      const email = `same.name@host${n}.example`
      await goThrough(fresh(), upstream, entry('asking'), { sub, email })
      names.push((await usersBy(email))[0].username)
    }
    expect(names).toEqual(['same.name', 'same.name-2', 'same.name-3'])
  })

  test('has roles by the mapping that the organization knows, beside the default ones', async () => {
    await create(app, '/roles', { name: 'crew', permissions: [] })
    const attribute_mapping = { roles: 'groups', username: 'nick', first_name: 'fn' }
    await addProvider(app, 'mapped', { client_id: 'mapped', attribute_mapping })
    upstream.twist = ({ claims }) =>
      Object.assign(claims, { groups: ['crew', 'captains', 7], nick: 'Ahab!', fn: 'A.' })
    const { sub, email } = somebody()
    await goThrough(fresh(), upstream, entry('mapped'), { sub, email })
    honest()
    expect(await usersBy(email)).toMatchObject([
      { roles: ['crew', 'user'], username: 'Ahab', first_name: 'A.' },
    ])
  })

  test('is refused where registration is closed, or the organization does not admit the address', async () => {
    const { sub, email } = somebody()
    await app.events()
    const closed = await goThrough(fresh(), upstream, entry('closed'), { sub, email })
    expect([closed.status, closed.heading]).toEqual([400, 'Signing in didn’t work'])
    expect(await refusal()).toEqual([['user.login_failed', '', 'registration_closed']])
    const { id } = await addOrganization(app, 'strict', { settings: { allowed_domains: ['strict.example'] } })
    await addProvider(app, 'strict', { organization_id: id, client_id: 'strict' })
    await app.events()
    for (const address of [email, 'a@sub.strict.example', 'a@strict.example.evil.example'])
      expect(
        (await goThrough(fresh(), upstream, '/oauth/social/strict', { sub, email: address })).status,
      ).toBe(400)
    expect((await refusal()).map(([, , reason]) => reason)).toEqual(Array(3).fill('domain_not_allowed'))
    const admitted = await goThrough(fresh(), upstream, '/oauth/social/strict', {
      sub,
      email: 'A@STRICT.example',
    })
    expect(admitted.heading).toBe('Your account')
    expect(await usersBy(email)).toEqual([])
  })

  test('comes by an address that the provider calls verified where only some domains are allowed', async () => {
    const { id } = await addOrganization(app, 'walled', { settings: { allowed_domains: ['walled.example'] } })
    await addProvider(app, 'walled', { organization_id: id, client_id: 'walled', trust_email: true })
    await app.events()
    const arrive = (said: Somebody) => goThrough(fresh(), upstream, '/oauth/social/walled', said)
    const { sub } = somebody()
    for (const said of [{ email: '' }, { email: 'me@walled.example', email_verified: 'false' }])
      expect((await arrive({ sub, ...said })).heading).toBe('Signing in didn’t work')
    expect(await refusal()).toEqual(Array(2).fill(['user.login_failed', '', 'address_not_verified']))
    expect((await arrive({ sub, email: 'me@walled.example' })).heading).toBe('Your account')
  })

  test('fifty arrivals of one person at the same moment make one user', async () => {
    const who = somebody()
    const pages = await Promise.all(
      Array.from({ length: 50 }, () => goThrough(fresh(), upstream, entry('asking'), who)),
    )
    const ids = await Promise.all(pages.map(whoIs))
    expect(new Set(ids).size).toBe(1)
    expect(await usersBy(who.email)).toHaveLength(1)
  })
})

describe('an address that a user has already', () => {
  test('FED-03 is linked at once when the provider is trusted and says that it is verified', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    await app.events()
    const page = await goThrough(fresh(), upstream, entry('trusted'), { sub, email: email.toUpperCase() })
    expect(await whoIs(page)).toBe(user.id)
    expect(await app.events()).toEqual([
      {
        type: 'user.updated',
        actor_id: user.id,
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { fields: ['external_accounts'], linked: trusted.id },
      },
    ])
    expect(await accountsOf(user.id)).toHaveLength(1)
  })

  const doubtful: [string, string, Json, Somebody][] = [
    ['the provider is not trusted', 'asking', {}, {}],
    ['it is not verified', 'trusted', {}, { email_verified: 'false' }],
    ['S-35 M-09 the user is an admin', 'trusted', { roles: ['admin'] }, {}],
    ['the user has more rights than the role user', 'trusted', { roles: ['user', 'reader'] }, {}],
    ['registration is closed', 'closed', {}, {}],
  ]

  test.each(doubtful)('FED-04 needs the local password once when %s', async (_, alias, more, said) => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, more)
    const browser = fresh()
    await app.events()
    const asked = await goThrough(browser, upstream, entry(alias), { sub, email, ...said })
    expect([asked.status, asked.heading]).toEqual([200, 'Is this you?'])
    expect(await app.events()).toEqual([])
    expect(await accountsOf(user.id)).toEqual([])
    const wrong = await browser.submit(asked, { password: 'Wrong-horse-7' })
    expect([wrong.status, wrong.heading]).toEqual([401, 'Is this you?'])
    expect(await refusal()).toEqual([['user.login_failed', user.id, 'wrong_password']])
    expect((await browser.submit(wrong, { password: '' })).status).toBe(400)
    const page = await browser.follow(await browser.submit(wrong, { password: PASSWORD }))
    expect(await whoIs(page)).toBe(user.id)
    expect(await refusal()).toMatchObject([['user.updated', user.id, { fields: ['external_accounts'] }]])
    const again = await goThrough(fresh(), upstream, entry(alias), { sub, email, ...said })
    expect(await whoIs(again)).toBe(user.id)
  })

  test('is not linked by a password that is reset while it is being verified', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email })
    const verify = spyOn(Bun.password, 'verify').mockImplementationOnce(async () => {
      const now = app.clock.now() + 1
      const reset = { password_hash: 'of another', password_temporary: false, password_changed_at: now }
      await app.context.store.write(tx => setPassword(tx, user.id, { ...reset, updated_at: now }))
      return true
    })
    const page = await browser.submit(asked, { password: PASSWORD })
    verify.mockRestore()
    expect([page.status, page.location]).toEqual([400, undefined])
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('M-09 of another organization is nobody’s here: no link, and a user of this organization', async () => {
    const { sub, email } = somebody()
    const { id } = await addOrganization(app, `home-of-${sub}`)
    const other = await addUser(app, sub, { organization_id: id })
    const page = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    const mine = await app.admin('GET', `/users/${await whoIs(page)}`)
    expect(mine.body).toMatchObject({ organization_id: 'org_default', email })
    expect(await accountsOf(other.id)).toEqual([])
  })

  test('of a disabled user lets nobody in', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { enabled: false })
    await app.events()
    expect((await goThrough(fresh(), upstream, entry('trusted'), { sub, email })).status).toBe(400)
    expect(await refusal()).toEqual([['user.login_failed', user.id, 'user_disabled']])
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email })
    expect((await browser.submit(asked, { password: PASSWORD })).status).toBe(401)
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('on an account that another provider brought without verifying it is no trap for its owner', async () => {
    const { sub, email } = somebody()
    await goThrough(fresh(), upstream, entry('asking'), { sub: `trap-${sub}`, email })
    const owner = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    expect(owner.heading).toBe('Is this you?')
  })

  test('S-35 that somebody gave themselves is no trap for its owner either', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, `trap-of-${sub}`)
    const browser = fresh()
    await signIn(browser, await browser.get('/account'), user.username)
    const moved = await app.admin('PUT', `/users/${user.id}`, { email })
    expect(moved.body).toMatchObject({ email, email_verified: false })
    const owner = await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
    expect(owner.heading).toBe('Is this you?')
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('a linked user who was disabled since, or whose provider was deleted', async () => {
    const { sub, email } = somebody()
    const id = await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub, email }))
    await app.admin('PUT', `/users/${id}`, { enabled: false })
    await app.events()
    expect((await goThrough(fresh(), upstream, entry('asking'), { sub, email })).status).toBe(400)
    expect(await refusal()).toEqual([['user.login_failed', id, 'user_disabled']])
    expect((await app.admin('DELETE', `/users/${id}`)).status).toBe(204)
    expect(await accountsOf(id)).toEqual([])
  })
})

describe('O-69 a user who has a second factor', () => {
  const guarded = async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { email_verified: true })
    const own = fresh()
    const { key } = await enrolTotp(app, own, await openEnrolment(own, sub))
    app.clock.advance(30_000)
    const code = () => codeOf(app, key)
    await app.events()
    return { user, sub, email, code, browser: fresh() }
  }
  const loginsOf = async (id: string) =>
    (await app.context.store.read(async q => q.select().from(q.tables.logins))).filter(
      ({ user_id }) => user_id === id,
    )

  test.each([['asking'], ['trusted']])('is not linked by anything less, at %s', async alias => {
    const { user, sub, email, code, browser } = await guarded()
    const said = { sub, email, email_verified: String(alias === 'trusted') }
    const arrived = await goThrough(browser, upstream, entry(alias), said)
    const step =
      alias === 'trusted'
        ? arrived
        : await browser.follow(await browser.submit(arrived, { password: PASSWORD }))
    expect(step.heading).toBe('Two-step verification')
    const before = await loginsOf(user.id)
    expect(await accountsOf(user.id)).toEqual([])
    expect(await app.events()).toEqual([])
    const [stored] = (
      await app.context.store.read(async q => q.select().from(q.tables.authorization_requests))
    ).filter(({ proof }) => proof?.user_id === user.id)
    expect(stored?.proof).toMatchObject({ user_id: user.id, action: expect.any(String) })
    expect(JSON.stringify(stored)).not.toContain(email)
    expect((await browser.submit(step, { code: '000000' })).status).toBe(401)
    expect((await refusal())[0]?.[2]).toBe('wrong_code')
    expect(await accountsOf(user.id)).toEqual([])
    const page = await browser.follow(await browser.submit(step, { code: code() }))
    expect(await whoIs(page)).toBe(user.id)
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub, label: email }])
    expect(await loginsOf(user.id)).toHaveLength(before.length + 1)
    expect(await refusal()).toMatchObject([['user.updated', user.id, { fields: ['external_accounts'] }]])
    expect((await browser.submit(step, { code: code() })).status).toBe(400)
    expect(await accountsOf(user.id)).toHaveLength(1)
  })

  test('is asked for it once linked, too: a provider stands for the password alone', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const proof = await goThrough(browser, upstream, entry('asking'), { sub, email })
    const step = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    await browser.follow(await browser.submit(step, { code: code() }))
    app.clock.advance(30_000)
    await app.events()
    const later = fresh()
    const again = await goThrough(later, upstream, entry('asking'), { sub, email })
    expect(again.heading).toBe('Two-step verification')
    expect((await later.get('/account')).heading).toBe('Sign in')
    const silent = answerOf(await later.get(authorizeUrl('app', { prompt: 'none' })))
    expect(silent.error).toBe('login_required')
    expect(await app.events()).toEqual([])
    const page = await later.follow(await later.submit(again, { code: code() }))
    const { acr, amr } = await codeRow(app, answerOf(page).code)
    expect([await whoIs(page), acr, amr]).toEqual([user.id, '2', ['fed', 'otp', 'mfa']])
  })

  test('is not linked when somebody else signs in instead, nor through a provider that is gone by then', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const other = await addUser(app, `other-${sub}`)
    const login = await browser.get(authorizeUrl('app'))
    const way = `/oauth/social/asking?request=${formOf(login).fields.request}`
    const proof = await goThrough(browser, upstream, way, { sub, email })
    expect((await browser.follow(await browser.submit(proof, { password: PASSWORD }))).heading).toBe(
      'Two-step verification',
    )
    expect(await whoIs(await signIn(browser, login, other.username))).toBe(other.id)
    expect((await accountsOf(user.id)).concat(await accountsOf(other.id))).toEqual([])
    await addProvider(app, 'fleeting', { client_id: 'fleeting' })
    const again = fresh()
    const asked = await goThrough(again, upstream, entry('fleeting'), { sub, email })
    const step = await again.follow(await again.submit(asked, { password: PASSWORD }))
    await app.admin('PUT', '/identity-providers/fleeting', { enabled: false })
    const late = await again.submit(step, { code: code() })
    expect([late.status, late.location]).toEqual([400, undefined])
    expect(await accountsOf(user.id)).toEqual([])
    expect((await app.events()).map(({ type }) => type)).not.toContain('user.updated')
  })

  test('is linked by the last of the factors that are asked for, not by one on the way', async () => {
    const { user, sub, email, code, browser } = await guarded()
    const stronger = `${entry('asking')}&acr_values=phr`
    const proof = await goThrough(browser, upstream, stronger, { sub, email })
    const step = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    const choice = await browser.follow(await browser.submit(step, { code: code() }))
    expect(choice.html).toContain('data-passkey="create"')
    expect(await accountsOf(user.id)).toEqual([])
    const { page } = await enrolPasskey(browser, choice)
    expect((await codeRow(app, answerOf(page).code)).acr).toBe('phr')
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub }])
  })

  test('R-24 or has to have one: the link waits for the enrolment, whatever restarts in between', async () => {
    const strict = await addOrganization(app, 'guarded', { settings: { mfa_required: true } })
    await addClient(app, 'guarded-app', { organization_id: strict.id })
    await addProvider(app, 'guarded-id', { organization_id: strict.id, client_id: 'guarded' })
    const { sub, email } = somebody()
    const user = await addUser(app, sub, { organization_id: strict.id })
    const at = authorizeUrl('guarded-app').replace('/oauth/authorize', '/oauth/social/guarded-id')
    const browser = openBrowser(restarting(app))
    const proof = await goThrough(browser, upstream, at, { sub, email })
    const choice = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    expect(choice.heading).toBe('Protect your account')
    expect(await accountsOf(user.id)).toEqual([])
    const { page } = await enrolTotp(app, browser, choice)
    expect(await accountsOf(user.id)).toMatchObject([{ subject: sub }])
    expect(await whoIs(await browser.submit(page, {}, '/oauth/enrol'))).toBe(user.id)
    // Somebody whom the provider brings enrols one as well, before anything is a login.
    const newcomer = fresh()
    const first = await goThrough(newcomer, upstream, at, somebody())
    expect(first.heading).toBe('Protect your account')
    expect((await newcomer.get('/account?organization=guarded')).heading).toBe('Sign in')
  })
})

describe('FED-06 what is missing is asked for on one page', () => {
  test('a name', async () => {
    const { sub, email } = somebody()
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email, name: '' })
    expect([asked.status, asked.heading]).toEqual([200, 'One more thing'])
    expect(Object.keys(asked.forms[0]?.fields ?? {})).toEqual(['csrf_token', 'first_name', 'last_name'])
    const again = await browser.submit(asked, { first_name: ' ' })
    expect([again.status, again.heading]).toEqual([422, 'One more thing'])
    const page = await browser.follow(
      await browser.submit(again, { first_name: 'Björk', email: 'forged@example.com' }),
    )
    expect((await app.admin('GET', `/users/${await whoIs(page)}`)).body).toMatchObject({
      first_name: 'Björk',
      last_name: '',
      email,
    })
  })

  test('an address, which nobody has verified then', async () => {
    const { sub, email } = somebody()
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('trusted'), { sub, email: '' })
    expect(Object.keys(asked.forms[0]?.fields ?? {})).toEqual(['csrf_token', 'email'])
    for (const wrong of ['', 'no address', '"quoted"@example.com'])
      expect((await browser.submit(asked, { email: wrong })).status).toBe(422)
    const page = await browser.follow(await browser.submit(asked, { email }))
    expect((await app.admin('GET', `/users/${await whoIs(page)}`)).body).toMatchObject({
      email,
      email_verified: false,
    })
  })

  test('an address of somebody else’s account needs its password, however trusted the provider', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('trusted'), { sub, email: '' })
    const proof = await browser.follow(await browser.submit(asked, { email }))
    expect(proof.heading).toBe('Is this you?')
    const page = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    expect(await whoIs(page)).toBe(user.id)
  })

  test('O-28 O-29 the form is this browser’s own, from this very page', async () => {
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { ...somebody(), name: '' })
    const fields = { ...asked.forms[0]?.fields, first_name: 'Eve' }
    const stranger = fresh()
    await stranger.get(authorizeUrl('app'))
    expect((await stranger.get(asked.url)).status).toBe(400)
    expect((await stranger.post('/oauth/link-account', fields)).status).toBe(403)
    expect(
      (await browser.post('/oauth/link-account', fields, { origin: 'https://evil.example' })).status,
    ).toBe(403)
    expect((await browser.post('/oauth/link-account', { ...fields, csrf_token: 'x.y' })).status).toBe(403)
    expect((await browser.follow(await browser.submit(asked, { first_name: 'Robin' }))).location).toStartWith(
      REDIRECT,
    )
    expect((await browser.submit(asked, { first_name: 'Robin' })).status).toBe(400)
  })

  test('can be answered after a reload, not after half an hour; what was kept is swept away', async () => {
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { ...somebody(), name: '' })
    expect((await browser.get(asked.url)).heading).toBe('One more thing')
    app.clock.advance(30 * 60_000)
    expect((await browser.get(asked.url)).status).toBe(400)
    const now = app.context.clock.now()
    for (const remove of removals) await app.context.store.write(tx => remove(tx, now))
    expect(await app.context.store.read(async q => q.select().from(q.tables.upstream_requests))).toEqual([])
  })
})

test('what is stored of a journey tells neither handle nor state nor person', async () => {
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

describe('ways in', () => {
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

  test('FED-07 with neither an authorization nor its parameters: ends on the person’s own page', async () => {
    await app.events()
    const page = await goThrough(fresh(), upstream, '/oauth/social/asking', somebody())
    expect(page.heading).toBe('Your account')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.created', 'user.login'])
  })

  test('bad parameters are refused as at the authorization endpoint', async () => {
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

  test('O-48 prompt=login and max_age ask the provider for a fresh proof', async () => {
    const promptOf = async (more: string) =>
      new URL((await fresh().get(entry('asking') + more)).location ?? '').searchParams.get('prompt')
    expect([
      await promptOf(''),
      await promptOf('&prompt=login'),
      await promptOf('&max_age=60'),
      await promptOf('&prompt=select_account'),
    ]).toEqual([null, 'login', 'login', 'select_account'])
  })

  test('O-48 whoever was to prove anew who they are, and by the provider’s own word did not, is refused', async () => {
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
    // Some providers never say when it was.
    upstream.twist = ({ claims }) => void delete claims.auth_time
    expect(await ends('&prompt=login')).toBe(302)
    honest()
    const away = new URL((await fresh().get(`${entry('asking')}&prompt=login`)).location ?? '')
    expect(away.searchParams.get('max_age')).toBe('0')
  })

  test('a clock that development moves, before or on the way, breaks no login: the provider’s times are measured by its own', async () => {
    for (const ms of [20 * 60_000, -20 * 60_000, 400 * 86_400_000]) {
      if (Math.abs(ms) > 86_400_000) app.clock.advance(ms)
      const browser = fresh()
      const away = await browser.get(`${entry('asking')}&prompt=login`)
      if (Math.abs(ms) < 86_400_000) app.clock.advance(ms)
      const back = pathOf(await atUpstream(upstream, away.location ?? '', somebody()))
      expect(answerOf(await browser.follow(await browser.get(back))).code).toBeString()
    }
  })

  test('FED-05 several upstream_requests of one browser all come to their end, in any order', async () => {
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

  test('O-32 form_post: the post is stored, and our own GET brings the browser’s cookie', async () => {
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

  test('an organization’s own provider, for a client that may reach there', async () => {
    const { id } = await addOrganization(app, 'acme')
    await addClient(app, 'bridge', { capabilities: ['cross_organization'] })
    await addProvider(app, 'acme-id', { organization_id: id, client_id: 'acme' })
    const path = authorizeUrl('bridge', { organization_id: id }).replace(
      '/oauth/authorize',
      '/oauth/social/acme-id',
    )
    const page = await goThrough(fresh(), upstream, path, somebody())
    expect((await codeRow(app, answerOf(page).code)).organization_id).toBe(id)
    // M-03: the provider of one organization is no way into another.
    expect((await fresh().get(path.replace(id, 'org_default'))).status).toBe(404)
    expect(
      (await fresh().get(authorizeUrl('bridge').replace('/oauth/authorize', '/oauth/social/acme-id'))).status,
    ).toBe(404)
  })

  test('R-24 a journey outlives a restart of the server, and what it knows of the provider with it', async () => {
    const browser = fresh()
    const away = await browser.get(entry('asking'))
    const back = pathOf(await atUpstream(upstream, away.location ?? '', { ...somebody(), name: '' }))
    const base = app.context
    const store = await openBeside((base.store as typeof base.store & { path: string }).path)
    const restarted = await createApp(openCore({ ...base, store }))
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

describe('the person’s own page', () => {
  const own = async (username: string): Promise<{ browser: Browser; page: Page }> => {
    const browser = fresh()
    return { browser, page: await signIn(browser, await browser.get('/account'), username) }
  }

  test('links an account after a proof there, and unlinks it again', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const { browser, page } = await own(sub)
    await app.events()
    const leave = await browser.follow(
      await browser.post('/account/identities/link', {
        csrf_token: page.forms[0]?.fields.csrf_token ?? '',
        provider: 'asking',
      }),
    )
    const back = pathOf(
      await atUpstream(upstream, leave.location ?? '', {
        sub: `at-${sub}`,
        email: 'elsewhere@other.example',
      }),
    )
    const linked = await browser.follow(await browser.get(back))
    expect(linked.html).toContain('Account connected')
    expect(linked.html).toContain('elsewhere@other.example')
    expect(await refusal()).toEqual([
      ['user.updated', user.id, { fields: ['external_accounts'], linked: asking.id }],
    ])
    expect(
      await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub: `at-${sub}`, email: '' })),
    ).toBe(user.id)
    await app.events()
    const gone = await browser.follow(await browser.submit(linked, {}, '/account/identities/unlink'))
    expect(gone.html).toContain('Account disconnected')
    expect(await refusal()).toEqual([
      ['user.updated', user.id, { fields: ['external_accounts'], unlinked: asking.id }],
    ])
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('R-24 a restart between any two steps of a link changes nothing, and it is made once', async () => {
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const browser = openBrowser(restarting(app), { ip: '198.51.100.250' })
    const page = await signIn(browser, await browser.get('/account'), sub)
    await app.events()
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const leave = await browser.follow(
      await browser.post('/account/identities/link', { csrf_token, provider: 'asking' }),
    )
    const back = pathOf(await atUpstream(upstream, leave.location ?? '', { sub: `at-${sub}` }))
    expect((await browser.follow(await browser.get(back))).html).toContain('Account connected')
    expect((await browser.get(back)).status).toBe(400)
    expect(await accountsOf(user.id)).toHaveLength(1)
    expect((await refusal()).map(([type]) => type)).toEqual(['user.updated', 'user.login_failed'])
  })

  test('keeps the only way in', async () => {
    const browser = fresh()
    const page = await goThrough(browser, upstream, '/oauth/social/asking', somebody())
    expect(page.html).toContain('Your only way to sign in')
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const [account] = (await accounts()).slice(-1)
    const forced = await browser.post('/account/identities/unlink', {
      csrf_token,
      provider: 'asking',
      subject: account?.subject ?? '',
    })
    expect(forced.status).toBe(400)
    expect(await accounts()).toContainEqual(account as never)
  })

  test('links nothing that is linked to somebody else, or to a person who has left the browser', async () => {
    const who = somebody()
    await goThrough(fresh(), upstream, entry('asking'), who)
    const { sub } = somebody()
    const user = await addUser(app, sub)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    const leave = async () => {
      const away = await browser.follow(
        await browser.post('/account/identities/link', { csrf_token, provider: 'asking' }),
      )
      return away.location ?? ''
    }
    await app.events()
    const taken = await browser.get(pathOf(await atUpstream(upstream, await leave(), who)))
    expect([taken.status, taken.heading]).toEqual([400, 'Signing in didn’t work'])
    expect((await refusal())[0]?.[2]).toBe('linked_elsewhere')
    const back = pathOf(await atUpstream(upstream, await leave(), somebody()))
    await browser.submit(page, {}, '/account/logout')
    await app.events()
    expect((await browser.get(back)).status).toBe(400)
    expect((await refusal())[0]?.[2]).toBe('not_logged_in')
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('O-28 nobody is made to link: the form, and the address that it leads to, are this person’s own', async () => {
    const { sub } = somebody()
    await addUser(app, sub)
    const { browser, page } = await own(sub)
    const { csrf_token = '' } = page.forms[0]?.fields ?? {}
    expect(
      (await browser.post('/account/identities/link', { csrf_token: 'x.y', provider: 'asking' })).status,
    ).toBe(403)
    expect((await browser.post('/account/identities/link', { csrf_token, provider: 'nobody' })).status).toBe(
      404,
    )
    const away = await browser.post('/account/identities/link', { csrf_token, provider: 'asking' })
    const link = new URL(away.location ?? '', 'http://localhost')
    const token = link.searchParams.get('link') ?? ''
    link.searchParams.set('link', token.replace(/usr_[^.]+/, 'usr_other'))
    expect((await browser.get(link.pathname + link.search)).status).toBe(403)
    const other = await browser.get(authorizeUrl('app', { prompt: 'login' }))
    const { request } = other.forms[0]?.fields ?? {}
    expect((await browser.get(`/oauth/social/asking?request=${request}&link=${token}`)).status).toBe(403)
    expect((await fresh().get(away.location ?? '')).status).toBe(400)
  })
})

test('user names are made of what the provider calls a person', () => {
  const named = (username: string | undefined, email?: string) => baseName({ username, email })
  expect(named('octocat')).toBe('octocat')
  expect(named('Zoë Müller')).toBe('Zoe-Muller')
  expect(named('ada@corp.example')).toBe('ada')
  expect(named(undefined, 'a.b+tag@corp.example')).toBe('a.b-tag')
  expect(named('小明')).toBe('user')
  expect(named('bo')).toBe('user-bo')
  expect(named('../../etc')).toBe('etc')
  expect(named('x'.repeat(300))).toHaveLength(100)
  expect(named(undefined)).toBe('user')
})
