import { describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary, type ResponseContent } from '#test/support/saml/response-parts.ts'
import { addSaml, arrive, certifiedProvider, comeBack, rowsOf, setOut } from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()
await addSaml(app, idp, 'wary')
await addSaml(app, idp, 'trusted', { trust_email: true })
await addSaml(app, idp, 'closed', { allow_registration: false })
const tenant = await addOrganization(app, 'tenant', { settings: { allowed_domains: ['tenant.example'] } })
await addSaml(app, idp, 'tenant', { organization_id: tenant.id, trust_email: true })
await addClient(app, 'web')
await addClient(app, 'tenant-web', { organization_id: tenant.id })
const entry = authorizeUrl('web').replace('/oauth/authorize', '')
const tenantEntry = authorizeUrl('tenant-web').replace('/oauth/authorize', '')

const isIn = (page: Page) => page.location?.startsWith('https://app.example/callback?code=') === true
const as = (name_id: string, mail: string): Partial<ResponseContent> => ({
  name_id,
  attributes: { mail: [mail], sn: ['Somebody'] },
})
const types = async () => (await app.events()).map(({ type }) => type)
const nothingMore = async (act: () => Promise<Page>): Promise<Page> => {
  const { users, sessions, external_accounts, logins } = await rowsOf(app)
  const page = await act()
  expect(await rowsOf(app)).toEqual({
    users,
    sessions,
    external_accounts,
    logins,
  } as never)
  return page
}

describe('S-35 the user that a response may sign in', () => {
  test('S-35 a NameID equal to a local user name does not match that user', async () => {
    const local = await addUser(app, 'boss')
    await app.events()
    expect(
      isIn(await arrive(app, idp, await setOut(app, 'wary', entry), as('boss', 'other-boss@example.com'))),
    ).toBe(true)
    const [created] = await app.events()
    expect(created?.target_id).not.toBe(local.id)
    expect((await app.admin('GET', `/users/${created?.target_id}`)).body.username).not.toBe('boss')
  })

  test('S-35 an e-mail address equal to a local user’s: the local password is asked for, once', async () => {
    await addUser(app, 'carol')
    const trip = await setOut(app, 'wary', entry)
    const page = await nothingMore(() => arrive(app, idp, trip, as('carol-1', 'Carol@example.com')))
    expect(page.url).toStartWith('/oauth/link-account')
    const wrong = await nothingMore(async () => trip.browser.submit(page, { password: 'wrong' }))
    expect(wrong.status).toBe(401)
    await app.events()
    expect(isIn(await trip.browser.follow(await trip.browser.submit(page, { password: PASSWORD })))).toBe(
      true,
    )
    expect(await types()).toEqual(['user.updated'])
    expect(
      isIn(await arrive(app, idp, await setOut(app, 'wary', entry), as('carol-1', 'gone@example.com'))),
    ).toBe(true)
  })

  test('S-35 with trust_email the address suffices to link', async () => {
    await addUser(app, 'dave')
    await app.events()
    expect(
      isIn(await arrive(app, idp, await setOut(app, 'trusted', entry), as('dave-1', 'dave@example.com'))),
    ).toBe(true)
    expect(await types()).toEqual(['user.updated'])
  })

  test('S-35 M-09 but never links a user with more rights than the role user', async () => {
    await addUser(app, 'chief', { roles: ['admin'] })
    const trip = await setOut(app, 'trusted', entry)
    const page = await nothingMore(() => arrive(app, idp, trip, as('chief-1', 'chief@example.com')))
    expect(page.url).toStartWith('/oauth/link-account')
  })

  test('S-35 a disabled user cannot sign in through any provider', async () => {
    const user = await addUser(app, 'erin')
    expect(
      isIn(await arrive(app, idp, await setOut(app, 'trusted', entry), as('erin-1', 'erin@example.com'))),
    ).toBe(true)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    await app.events()
    const trip = await setOut(app, 'trusted', entry)
    expect((await nothingMore(() => arrive(app, idp, trip, as('erin-1', 'erin@example.com')))).status).toBe(
      400,
    )
    const [event, ...more] = await app.events()
    expect([event?.type, event?.metadata.failure_reason, more]).toEqual([
      'user.login_failed',
      'user_disabled',
      [],
    ])
  })

  test('S-35 with registration closed a new user is refused', async () => {
    const trip = await setOut(app, 'closed', entry)
    await app.events()
    expect((await nothingMore(() => arrive(app, idp, trip, as('new-1', 'new@example.com')))).status).toBe(400)
    expect((await app.events()).map(({ metadata }) => metadata.failure_reason)).toEqual([
      'registration_closed',
    ])
  })

  test('missing attributes are asked for on one page', async () => {
    const trip = await setOut(app, 'wary', entry)
    const page = await nothingMore(() => arrive(app, idp, trip, { name_id: 'bare-1', attributes: {} }))
    const answers = { email: 'bare@example.com', first_name: 'Bare', last_name: 'Bones' }
    expect(isIn(await trip.browser.follow(await trip.browser.submit(page, answers)))).toBe(true)
  })
})

describe('M-09 a provider of one organization', () => {
  test('M-09 S-35 never identifies a user of another, however trusted', async () => {
    const outside = await addUser(app, 'frank')
    await app.admin('PUT', `/organizations/${tenant.id}`, { settings: { allowed_domains: [] } })
    await app.events()
    const trip = await setOut(app, 'tenant', tenantEntry)
    expect(isIn(await arrive(app, idp, trip, as('frank-1', 'frank@example.com')))).toBe(true)
    const [created] = await app.events()
    expect([created?.type, created?.organization_id]).toEqual(['user.created', tenant.id])
    expect(created?.target_id).not.toBe(outside.id)
    await app.admin('PUT', `/organizations/${tenant.id}`, {
      settings: { allowed_domains: ['tenant.example'] },
    })
  })

  test('M-03 its users get no code for a client of another', async () => {
    const browser = openBrowser(app)
    const trip = await setOut(app, 'tenant', '', browser)
    expect((await arrive(app, idp, trip, as('grace-1', 'grace@tenant.example'))).url).toBe('/account')
    const page = await browser.get(authorizeUrl('web'))
    expect([page.status, page.heading]).toEqual([
      200,
      (await openBrowser(app).get(authorizeUrl('web'))).heading,
    ])
    expect(isIn(await browser.get(authorizeUrl('tenant-web')))).toBe(true)
  })

  test('M-03 a response for one organization completes no authorization of another', async () => {
    const browser = openBrowser(app)
    const theirs = await setOut(app, 'tenant', tenantEntry, browser)
    const ours = await setOut(app, 'wary', entry, browser)
    const said = { ...ordinary(theirs.party), ...as('heidi-1', 'heidi@tenant.example') }
    const crossed = { ...theirs, relay_state: ours.relay_state }
    const answer = await comeBack(app, crossed, encode(idp.respond(said)))
    expect(answer.status).toBe(400)
  })

  test('FED-14 allowed_domains apply to a first login', async () => {
    await app.events()
    const trip = await setOut(app, 'tenant', tenantEntry)
    const page = await nothingMore(() => arrive(app, idp, trip, as('ivan-1', 'ivan@evil.tenant.example')))
    expect(page.status).toBe(400)
    expect((await app.events()).map(({ metadata }) => metadata.failure_reason)).toEqual([
      'domain_not_allowed',
    ])
  })

  test('S-32 two providers with the same entity id and key have separate users', async () => {
    const [one, two] = [as('same-1', 'one@example.com'), as('same-1', 'two@tenant.example')]
    await app.events()
    expect(isIn(await arrive(app, idp, await setOut(app, 'wary', entry), one))).toBe(true)
    expect(isIn(await arrive(app, idp, await setOut(app, 'tenant', tenantEntry), two))).toBe(true)
    expect((await app.events()).map(({ type, organization_id }) => [type, organization_id])).toEqual([
      ['user.created', 'org_default'],
      ['user.updated', 'org_default'],
      ['user.created', tenant.id],
      ['user.updated', tenant.id],
    ])
  })

  test('a user from a provider has no local password', async () => {
    expect(
      isIn(await arrive(app, idp, await setOut(app, 'wary', entry), as('judy-1', 'judy@example.com'))),
    ).toBe(true)
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get(authorizeUrl('web')), 'judy@example.com', '')
    expect(isIn(page)).toBe(false)
  })
})
