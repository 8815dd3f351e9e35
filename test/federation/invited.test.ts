import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { Json } from '#test/support/app.ts'
import type { Browser, Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD, signIn } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'
import { startLinking } from './linking-world.ts'
import { addSaml, arrive, certifiedProvider, setOut as startTrip } from './saml/world.ts'
import { addProvider, atUpstream, pathOf, type UpstreamUser } from './upstream.ts'

const mail = captureMail()
const { app, upstream, fresh, somebody, usersBy, accountsOf } = await startLinking({ mail })
const gone = { status: 410, heading: 'This link doesn’t work any more' }

const invite = (body: Json = {}): Promise<Json> => create(app, '/invitations', { delivery: 'link', ...body })
const users = () => app.context.store.read(async q => q.select().from(q.tables.users))

/** Chooses a provider on the page of an invitation, and returns the answer. */
const choose = (browser: Browser, page: Page, provider: string): Promise<Page> =>
  browser.submit({ ...page, forms: page.forms.slice(0, 1) }, { provider })

/**
 * Opens an invitation and follows the redirect to the provider. Returns the path of the callback, which is
 * not called yet.
 */
const setOut = async (url: string, who: UpstreamUser, alias = 'closed', browser = fresh()) => {
  const away = await browser.follow(await choose(browser, await browser.get(url), alias))
  return { browser, callback: pathOf(await atUpstream(upstream, away.location ?? '', who)) }
}

const accept = async (...trip: Parameters<typeof setOut>): Promise<Page> => {
  const { browser, callback } = await setOut(...trip)
  return browser.follow(await browser.get(callback))
}

const refusals = async () =>
  (await app.events()).filter(({ type }) => type === 'user.login_failed').map(each => each.metadata)

beforeEach(async () => {
  await app.events()
})

describe('an invited person who comes by a provider', () => {
  test('PEO-30 PEO-11 may have a name that looks like a name of the staff', async () => {
    const { invitation_url } = await invite()
    const { sub } = somebody()
    const email = `support@${sub}.example`
    expect((await accept(invitation_url, { sub, email })).heading).toBe('Your account')
    expect(await usersBy(email)).toMatchObject([{ username: 'support' }])
  })

  test('PEO-30 is created with the roles and groups, also where registration is closed', async () => {
    await create(app, '/roles', { name: 'auditor', permissions: [] })
    const group = await create(app, '/groups', { name: 'Sales' })
    const { id, invitation_url } = await invite({ roles: ['auditor'], groups: [group.id] })
    await app.events()
    const { sub, email } = somebody()
    expect((await accept(invitation_url, { sub, email })).heading).toBe('Your account')
    const [user] = await usersBy(email)
    expect(user).toMatchObject({ roles: ['auditor', 'user'], email_verified: false, username: sub })
    expect(await accountsOf(user?.id)).toMatchObject([{ subject: sub }])
    expect((await app.events()).map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['user.created', null],
      ['user.updated', user?.id],
      ['invitation.accepted', user?.id],
      ['group.updated', 'gatehouse-admin'],
      ['user.login', user?.id],
    ])
    expect((await app.admin('GET', `/invitations/${id}`)).body).toMatchObject({
      status: 'accepted',
      accepted_by: [{ user_id: user?.id }],
    })
    expect((await app.admin('GET', `/groups/${group.id}`)).body.member_count).toBe(1)
  })

  test('PEO-30 PEO-02 has the address of the invitation, verified when the link was mailed', async () => {
    const invited = somebody()
    await create(app, '/invitations', { delivery: 'mail', email: invited.email })
    await deliverMails(app.context)
    const url = /http:\S+/.exec(mail.mails.at(-1)?.text ?? '')?.[0] ?? ''
    const other = somebody()
    expect((await accept(url, other)).heading).toBe('Your account')
    expect(await usersBy(invited.email)).toMatchObject([{ email: invited.email, email_verified: true }])
    expect(await usersBy(other.email)).toEqual([])
    const byLink = somebody()
    await accept((await invite({ email: byLink.email })).invitation_url, somebody(), 'trusted')
    expect(await usersBy(byLink.email)).toMatchObject([{ email_verified: false }])
  })

  test('PEO-30 is asked for a missing name, in the same invitation', async () => {
    const { id, invitation_url } = await invite()
    const { sub, email } = somebody()
    const { browser, callback } = await setOut(invitation_url, { sub, email, name: '' })
    const asked = await browser.follow(await browser.get(callback))
    expect(asked.heading).toBe('One more thing')
    const page = await browser.follow(await browser.submit(asked, { first_name: 'Robin' }))
    expect(page.heading).toBe('Your account')
    expect((await app.admin('GET', `/invitations/${id}`)).body.uses).toBe(1)
  })

  test('PEO-30 PEO-06 becomes the user who was created with the invitation', async () => {
    const { sub: username, email } = somebody()
    const person = { username, email, first_name: 'Bob', last_name: 'Roe', roles: ['user'], invite: 'link' }
    const created = await create(app, '/users', person)
    await app.events()
    const { sub } = somebody()
    expect((await accept(created.invitation_url, { sub, email: 'elsewhere@example.com' })).heading).toBe(
      'Your account',
    )
    expect(await accountsOf(created.id)).toMatchObject([{ subject: sub }])
    const [linked, ...others] = await app.events()
    expect(linked).toMatchObject({
      type: 'user.updated',
      actor_id: created.id,
      target_id: created.id,
      metadata: { fields: ['external_accounts'], linked: expect.stringMatching(/^idp_/) },
    })
    expect(others.map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['invitation.accepted', created.id],
      ['user.login', created.id],
    ])
    expect((await fresh().get(created.invitation_url)).status).toBe(410)
  })

  test('PEO-30 comes by SAML, too', async () => {
    const { id } = await addOrganization(app, 'saml-only')
    const idp = await certifiedProvider()
    await addSaml(app, idp, 'corporate', { organization_id: id })
    const invitation = await invite({ organization_id: id })
    const browser = fresh()
    const { location = '' } = await choose(browser, await browser.get(invitation.invitation_url), 'corporate')
    const trip = await startTrip(app, 'corporate', location.slice(location.indexOf('?')), browser)
    expect((await arrive(app, idp, trip)).heading).toBe('Your account')
    expect((await app.admin('GET', `/invitations/${invitation.id}`)).body.status).toBe('accepted')
  })

  test('PEO-30 one account that answers two invitations at once uses up only one', async () => {
    const trips = []
    for (const number of [1, 2]) {
      const username = `shared-${number}`
      const { id, invitation_url } = await create(app, '/users', {
        username,
        email: `${username}@example.com`,
        first_name: 'Robin',
        last_name: 'Shared',
        invite: 'link',
      })
      trips.push({ id, invitation_url, ...(await setOut(invitation_url, { sub: 'shared', email: '' })) })
    }
    await app.events()
    await Promise.all(trips.map(({ browser, callback }) => browser.get(callback)))
    const linked = await Promise.all(trips.map(async ({ id }) => (await accountsOf(id)).length))
    expect(linked.toSorted()).toEqual([0, 1])
    expect((await app.events()).filter(({ type }) => type === 'invitation.accepted')).toHaveLength(1)
    const open = trips[linked.indexOf(0)]?.invitation_url
    expect((await fresh().get(open)).status).toBe(200)
  })
})

describe('an invitation that a provider login must not use', () => {
  test('PEO-30 PEO-03 is used once, by the first of two at once, and by no replay', async () => {
    const { id, invitation_url } = await invite()
    const [one, two] = [somebody(), somebody()]
    const trips = await Promise.all([setOut(invitation_url, one), setOut(invitation_url, two)])
    const answers = await Promise.all(trips.map(({ browser, callback }) => browser.get(callback)))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 410])
    expect([...(await usersBy(one.email)), ...(await usersBy(two.email))]).toHaveLength(1)
    expect(await refusals()).toMatchObject([{ failure_reason: 'invitation_ended' }])
    for (const { browser, callback } of trips) expect((await browser.get(callback)).status).toBe(400)
    expect((await app.admin('GET', `/invitations/${id}`)).body.uses).toBe(1)
  })

  test('PEO-30 PEO-04 gives nothing after its time, its withdrawal, or its maker’s dismissal', async () => {
    // Without a second administrator, `maker` would be the last administrator and would keep the role.
    await addUser(app, 'boss', { roles: ['admin'] })
    const maker = await addUser(app, 'maker', { roles: ['admin'] })
    const client = await addClient(app, 'desk', { scopes: ['openid', 'admin'] })
    const { access_token: token } = await grantTokens(app, client, maker, { scope: 'openid admin' })
    const dismissed = (await app.admin('POST', '/invitations', { delivery: 'link' }, token)).body
    const withdrawn = await invite()
    const late = await invite({ expires_in: 3600 })
    const before = (await users()).length
    const refused = async ({ invitation_url }: Json, end: () => Promise<unknown>) => {
      const { browser, callback } = await setOut(invitation_url, somebody())
      await end()
      await app.events()
      expect(await browser.get(callback)).toMatchObject(gone)
      expect(await refusals()).toMatchObject([{ failure_reason: 'invitation_ended' }])
    }
    await refused(dismissed, () => app.admin('PUT', `/users/${maker.id}`, { roles: ['user'] }))
    await refused(withdrawn, () => app.admin('DELETE', `/invitations/${withdrawn.id}`))
    app.clock.advance(HOUR - 1000)
    await refused(late, async () => app.clock.advance(1000))
    expect(await users()).toHaveLength(before)
  })

  test('PEO-30 keeps the domains of the organization, and addresses that others have', async () => {
    const acme = await addOrganization(app, 'acme', { settings: { allowed_domains: ['acme.example'] } })
    await addProvider(app, 'acme', { organization_id: acme.id, client_id: 'acme', allow_registration: false })
    const refused = async (who: UpstreamUser, body: Json = {}) => {
      const { invitation_url } = await invite({ organization_id: acme.id, ...body })
      await app.events()
      expect((await accept(invitation_url, who, 'acme')).status).toBe(400)
      return refusals()
    }
    expect(await refused(somebody())).toMatchObject([{ failure_reason: 'domain_not_allowed' }])
    const email = 'pat@acme.example'
    expect(await refused({ ...somebody(), email, email_verified: 'false' })).toMatchObject([
      { failure_reason: 'address_not_verified' },
    ])
    const named = await invite({ organization_id: acme.id, email })
    expect((await accept(named.invitation_url, somebody(), 'acme')).heading).toBe('Your account')
    const second = await invite({ organization_id: acme.id, email: 'kim@acme.example' })
    const { browser, callback } = await setOut(second.invitation_url, somebody(), 'acme')
    const kim = { username: 'kim', email: 'kim@acme.example', password: PASSWORD, organization_id: acme.id }
    await create(app, '/users', { ...kim, first_name: 'Kim', last_name: 'Li' })
    await app.events()
    expect((await browser.get(callback)).status).toBe(400)
    expect(await refusals()).toMatchObject([{ failure_reason: 'address_taken' }])
  })

  test('PEO-30 stays open when the person has an account, which asks for its password', async () => {
    const { sub, email } = somebody()
    const known = await addUser(app, sub)
    const { id, invitation_url } = await invite({ roles: ['admin'] })
    expect((await accept(invitation_url, { sub: 'by-mail', email })).heading).toBe('Is this you?')
    const returning = somebody()
    await accept((await invite()).invitation_url, returning)
    expect((await accept(invitation_url, returning)).heading).toBe('Your account')
    expect((await app.admin('GET', `/invitations/${id}`)).body).toMatchObject({ status: 'pending', uses: 0 })
    expect((await app.admin('GET', `/users/${known.id}`)).body.roles).toEqual(['user'])
  })

  test('PEO-30 PEO-05 makes another account beside the one that is signed in', async () => {
    const user = await addUser(app, 'signed-in')
    const browser = fresh()
    await signIn(browser, await browser.get('/account'), user.username)
    const { sub, email } = somebody()
    const { invitation_url } = await invite()
    expect((await browser.get(invitation_url)).html).toContain('You are signed in as signed-in.')
    await accept(invitation_url, { sub, email }, 'closed', browser)
    expect(await usersBy(email)).toHaveLength(1)
    expect(await accountsOf(user.id)).toEqual([])
  })

  test('PEO-30 its form leads to no provider of another organization, and is refused in another browser', async () => {
    const { id } = await addOrganization(app, 'foreign')
    await addProvider(app, 'foreign', { organization_id: id, client_id: 'foreign' })
    const browser = fresh()
    const page = await browser.get((await invite()).invitation_url)
    expect((await choose(browser, page, 'foreign')).status).toBe(404)
    const stranger = fresh()
    await stranger.get('/account')
    expect((await choose(stranger, page, 'closed')).status).toBe(403)
  })
})
