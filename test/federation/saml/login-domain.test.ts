/** Tests the login through a provider after an address has led to the page of its organization. */
import { expect, test } from 'bun:test'
import { inflateRawSync } from 'node:zlib'
import { formatTime } from '#src/protocol/saml/time.ts'
import { attributeOf, parseXml } from '#src/protocol/saml/xml.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'
import { addSaml, arrive, certifiedProvider, partyOf } from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()
const acme = await addOrganization(app, 'acme', { settings: { login_domains: ['acme.example'] } })
await addSaml(app, idp, 'acme-sso', { organization_id: acme.id })
await addClient(app, 'cross', { capabilities: ['cross_organization'] })

/** Types an address of acme on the page at `url`, and presses the button of acme's provider. */
const typeAddress = async (url: string, browser = openBrowser(app)) => {
  const page = await signIn(browser, await browser.get(url), 'amy@acme.example', 'any text')
  const button = /href="(\/saml\/acme-sso\/login\?request=[^"]+)"/.exec(page.html)?.[1] ?? ''
  const { searchParams } = new URL((await browser.get(button)).location ?? '')
  const message = inflateRawSync(Buffer.from(searchParams.get('SAMLRequest') ?? '', 'base64')).toString()
  const root = parseXml(message)
  const party = partyOf(app, 'acme-sso', attributeOf(root, 'ID'))
  const trip = { alias: 'acme-sso', browser, relay_state: searchParams.get('RelayState') ?? '', party }
  return { page, trip, force: attributeOf(root, 'ForceAuthn') }
}

const amy = { name_id: 'amy', attributes: { mail: ['amy@acme.example'], givenName: ['Amy'] } }
const hour_ago = app.clock.now() - 3_600_000
const signedInBefore = { ...amy, authn_instant: formatTime(hour_ago) }
const logins = () => app.context.store.read(async q => q.select().from(q.tables.logins))

test('FED-26 an address of a login domain demands no new authentication at the provider', async () => {
  const { page, trip, force } = await typeAddress('/account')
  expect(page.html).toContain('value="amy@acme.example"')
  expect(force).toBeUndefined()
  const account = await arrive(app, idp, trip, signedInBefore)
  expect([account.url, account.heading]).toEqual(['/account', 'Your account'])
  expect(await logins()).toMatchObject([{ organization_id: acme.id, auth_time: hour_ago }])
})

test('FED-26 a client that demands a new authentication gets one', async () => {
  const { trip, force } = await typeAddress(authorizeUrl('cross', { prompt: 'login' }))
  expect(force).toBe('true')
  expect((await arrive(app, idp, trip, signedInBefore)).status).toBe(400)
})

test('FED-26 PAG-66 an existing login of another user there is not used', async () => {
  const browser = openBrowser(app)
  await addUser(app, 'alan', { organization_id: acme.id })
  await signIn(browser, await browser.get('/account?organization=acme'), 'alan')
  const { page, trip } = await typeAddress(authorizeUrl('cross'), browser)
  expect(page.heading).toBe('Sign in')
  const { code } = answerOf(await arrive(app, idp, trip, signedInBefore))
  const { user_id } = await codeRow(app, code)
  expect((await app.admin('GET', `/users/${user_id}`)).body.email).toBe('amy@acme.example')
})
