/** Tests the class of authentication that an organization demands for the console. */
import { beforeEach, expect, test } from 'bun:test'
import { BASE, startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create, refused } from '#test/support/callers.ts'
import { enrolPasskey, enrolTotp } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn, VERIFIER } from '#test/support/people.ts'
import { claimsOf, post } from '#test/support/tokens.ts'

const toConsole = (more: Record<string, string> = {}) =>
  authorizeUrl('gatehouse-console', {
    redirect_uri: `${BASE}/console/callback`,
    scope: 'openid admin',
    ...more,
  })

let app: TestApp
beforeEach(async () => {
  app = await startApp()
  await addClient(app, 'web')
  await create(app, '/roles', { name: 'reader', permissions: ['users:read'] })
  // This role does not include profile:update. A user with this role may only add a factor that the
  // organization demands.
  await addUser(app, 'ada', { roles: ['reader'] })
})

const demand = (console_acr: string | null, organization = 'default') =>
  app.admin('PUT', `/organizations/${organization}`, { settings: { console_acr } })
const browse = () => openBrowser(app, { headers: { 'sec-fetch-mode': 'navigate' } })
/** Redeems the code, and returns the `acr` claim of the ID token. */
const acrOf = async (page: Page) => {
  const { body } = await post(app, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: 'gatehouse-console',
    redirect_uri: `${BASE}/console/callback`,
    code: answerOf(page).code,
    code_verifier: VERIFIER,
  })
  return claimsOf(body.id_token).acr
}

test('CON-27 a login without the demanded factor adds it, also without profile:update', async () => {
  const browser = browse()
  expect(answerOf(await signIn(browser, await browser.get(toConsole()), 'ada'))).toHaveProperty('code')
  expect((await demand('2')).status).toBe(200)
  const asked = await browser.follow(await browser.get(toConsole()))
  expect(asked.heading).toBe('Protect your account')
  expect(answerOf(await browser.get(toConsole({ prompt: 'none' }))).error).toBe('interaction_required')
  const { page } = await enrolTotp(app, browser, asked)
  expect(await acrOf(await browser.submit(page, {}, '/oauth/enrol'))).toBe('2')

  expect((await demand('phr')).status).toBe(200)
  const again = await browser.follow(await browser.get(toConsole()))
  expect(again.html).not.toContain('kind=totp')
  const added = await enrolPasskey(browser, again)
  expect(await acrOf(added.page)).toBe('phr')
})

test('CON-27 the demand holds for the console of its organization alone, and weakens no request', async () => {
  const acme = await addOrganization(app, 'acme')
  await addUser(app, 'bob', { organization_id: acme.id })
  await demand('2', 'acme')
  const browser = browse()
  expect(answerOf(await signIn(browser, await browser.get(toConsole()), 'ada'))).toHaveProperty('code')
  await demand('2')
  expect(answerOf(await browser.get(authorizeUrl('web')))).toHaveProperty('code')
  const stronger = await browser.follow(await browser.get(toConsole({ acr_values: 'phr' })))
  expect(stronger.html).not.toContain('kind=totp')
  const theirs = browse()
  const page = await signIn(theirs, await theirs.get(toConsole({ organization_id: acme.id })), 'bob')
  expect(page.heading).toBe('Protect your account')
})

test('CON-27 a class that the address of the server cannot offer is refused', async () => {
  for (const value of ['1', 'x', true])
    expect(refused(await demand(value as string))).toEqual(['settings.console_acr'])
  const plain = await startApp({ url: 'http://192.0.2.1:8080' })
  const put = (console_acr: string) =>
    plain.admin('PUT', '/organizations/default', { settings: { console_acr } })
  expect(refused(await put('phr'))).toEqual(['settings.console_acr'])
  expect((await put('2')).status).toBe(200)
})
