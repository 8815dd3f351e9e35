import { describe, expect, test } from 'bun:test'
import { baseName } from '#src/federation/provisioning.ts'
import { CLOCK_SKEW } from '#src/lib/duration.ts'
import { removals } from '#src/operations/sweep-store.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { formOf } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, addUser, authorizeUrl, PASSWORD, REDIRECT } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, goThrough, type UpstreamUser } from './upstream.ts'

const { app, upstream, honest, asking, fresh, somebody, entry, usersBy, accountsOf, whoIs, refusal } =
  await startLinking()

describe('a new user', () => {
  test('is created with the default roles, linked by the subject', async () => {
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
      email_code: true,
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
        metadata: { roles_added: ['user'] },
      },
      {
        type: 'user.updated',
        actor_id: id,
        target_id: id,
        target_type: 'user',
        organization_id: 'org_default',
        metadata: { fields: ['external_accounts'], linked: asking.id },
      },
    ])
  })

  test('is the same user at the second login, even with another address', async () => {
    const { sub, email } = somebody()
    const id = await whoIs(await goThrough(fresh(), upstream, entry('asking'), { sub, email }))
    await app.events()
    const again = await goThrough(fresh(), upstream, entry('asking'), { sub, email: 'moved@example.com' })
    expect(await whoIs(again)).toBe(id)
    expect(await app.events()).toEqual([])
    expect((await usersBy('moved@example.com')).length).toBe(0)
  })

  test('gets no name that would change how a line is shown', async () => {
    for (const name of ['Rob\u202ein', 'Rob\u009bin', 'Rob\nin', 'Rob\u0000in']) {
      const { sub, email } = somebody()
      const page = await goThrough(fresh(), upstream, entry('asking'), { sub, email, name: `${name} Li` })
      expect((await app.admin('GET', `/users/${await whoIs(page)}`)).body.first_name).not.toContain('Rob')
    }
  })

  test('has a verified address only when the provider is trusted for it', async () => {
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

  test('gets another user name when theirs is taken', async () => {
    const names: string[] = []
    for (let n = 0; n < 3; n++) {
      const { sub } = somebody()
      const email = `same.name@host${n}.example`
      await goThrough(fresh(), upstream, entry('asking'), { sub, email })
      names.push((await usersBy(email))[0].username)
    }
    expect(names).toEqual(['same.name', 'same.name-2', 'same.name-3'])
  })

  test('has the default roles, and the roles of the mapping that exist in the organization', async () => {
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

  test('FED-27 has the roles of a mapped claim that only the userinfo endpoint has', async () => {
    await create(app, '/roles', { name: 'deck', permissions: [] })
    await addProvider(app, 'userinfo', { client_id: 'userinfo', attribute_mapping: { roles: 'groups' } })
    const arrive = async (twist: typeof upstream.twist) => {
      upstream.twist = twist
      upstream.asked.length = 0
      const { sub, email } = somebody()
      await goThrough(fresh(), upstream, entry('userinfo'), { sub, email })
      honest()
      return { roles: (await usersBy(email))[0].roles, isAsked: upstream.asked.includes('/userinfo') }
    }
    const groups = ['deck']
    expect(await arrive(({ userinfo }) => Object.assign(userinfo, { groups }))).toEqual({
      roles: ['deck', 'user'],
      isAsked: true,
    })
    expect(await arrive(({ claims }) => Object.assign(claims, { groups }))).toEqual({
      roles: ['deck', 'user'],
      isAsked: false,
    })
  })

  test('FED-28 has a role of the organization that comes after a hundred other groups', async () => {
    await create(app, '/roles', { name: 'last', permissions: [] })
    await addProvider(app, 'many', { client_id: 'many', attribute_mapping: { roles: 'groups' } })
    const groups = [...Array.from({ length: 150 }, (_, n) => `group-${n}`), 'last']
    upstream.twist = ({ claims }) => Object.assign(claims, { groups })
    const { sub, email } = somebody()
    await goThrough(fresh(), upstream, entry('many'), { sub, email })
    honest()
    expect(await usersBy(email)).toMatchObject([{ roles: ['last', 'user'] }])
  })

  test('is refused where registration is closed, or the organization does not allow the address', async () => {
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

  test('needs a verified address of the provider where domains are restricted', async () => {
    const { id } = await addOrganization(app, 'walled', { settings: { allowed_domains: ['walled.example'] } })
    await addProvider(app, 'walled', { organization_id: id, client_id: 'walled', trust_email: true })
    await app.events()
    const arrive = (said: UpstreamUser) => goThrough(fresh(), upstream, '/oauth/social/walled', said)
    const { sub } = somebody()
    for (const said of [{ email: '' }, { email: 'me@walled.example', email_verified: 'false' }])
      expect((await arrive({ sub, ...said })).heading).toBe('Signing in didn’t work')
    expect(await refusal()).toEqual(Array(2).fill(['user.login_failed', '', 'address_not_verified']))
    expect((await arrive({ sub, email: 'me@walled.example' })).heading).toBe('Your account')
  })

  test('fifty simultaneous logins of one person create one user', async () => {
    const who = somebody()
    const pages = await Promise.all(
      Array.from({ length: 50 }, () => goThrough(fresh(), upstream, entry('asking'), who)),
    )
    const ids = await Promise.all(pages.map(whoIs))
    expect(new Set(ids).size).toBe(1)
    expect(await usersBy(who.email)).toHaveLength(1)
  })

  test('several forms of one person, sent at once with several addresses, create one user', async () => {
    const { sub } = somebody()
    const trips = []
    for (const number of [1, 2, 3]) {
      const browser = fresh()
      const page = await goThrough(browser, upstream, entry('asking'), { sub, email: '' })
      trips.push({ browser, page, email: `${sub}-${number}@example.com` })
    }
    await app.events()
    const pages = await Promise.all(
      trips.map(async ({ browser, page, email }) =>
        browser.follow(await browser.submit(page, { email, first_name: 'Robin' })),
      ),
    )
    const ids = new Set(await Promise.all(pages.map(whoIs)))
    expect(ids.size).toBe(1)
    expect((await usersBy(`${sub}-`)).map(({ id }) => id)).toEqual([...ids])
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.created', 'user.updated'])
  })
})

describe('FED-06 missing data is asked for on one page', () => {
  test('a user name', async () => {
    const { sub, email } = somebody()
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { sub, email, name: '' })
    expect([asked.status, asked.heading]).toEqual([200, 'One more thing'])
    expect(Object.keys(formOf(asked).fields)).toEqual(['csrf_token', 'first_name', 'last_name'])
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

  test('an address, which stays unverified', async () => {
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

  test('an address of another user’s account requires its password, however trusted the provider', async () => {
    const { sub, email } = somebody()
    const user = await addUser(app, sub)
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('trusted'), { sub, email: '' })
    const proof = await browser.follow(await browser.submit(asked, { email }))
    expect(proof.heading).toBe('Is this you?')
    const page = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
    expect(await whoIs(page)).toBe(user.id)
  })

  test('O-28 O-29 the form is bound to this browser and page', async () => {
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

  test('can be submitted after a reload, not after half an hour; stored data is swept', async () => {
    const browser = fresh()
    const asked = await goThrough(browser, upstream, entry('asking'), { ...somebody(), name: '' })
    expect((await browser.get(asked.url)).heading).toBe('One more thing')
    app.clock.advance(30 * 60_000)
    expect((await browser.get(asked.url)).status).toBe(400)
    // An expired row is kept for the minute by which the clocks of two copies may differ.
    const now = app.context.clock.now() + CLOCK_SKEW
    for (const remove of removals)
      await app.context.store.write(tx => remove(tx, DELETE_BATCH, now, app.context))
    expect(await app.context.store.read(async q => q.select().from(q.tables.upstream_requests))).toEqual([])
  })
})

test('user names are derived from the provider’s claims', () => {
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
