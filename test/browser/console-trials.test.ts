/** Tests the test logins and connection tests of the console in a browser. */
import { expect } from 'bun:test'
import type { Outbound } from '#src/context.ts'
import { fakeOpenId } from '#src/dev/fake-openid.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'

const ISSUER = 'https://upstream.example'
const upstream = await fakeOpenId({ issuer: ISSUER, alter: () => {}, publish: keys => keys })

/** The token endpoint accepts only the client secret `right`. */
const fetch: Outbound = async (url, init) => {
  if (!String(url).endsWith('/token')) return upstream.fetch(new Request(url, init as RequestInit))
  const secret = Buffer.from(new Headers(init.headers).get('authorization')?.slice(6) ?? '', 'base64')
  const isRight = secret.toString().endsWith(':right')
  return Response.json({ error: isRight ? 'invalid_grant' : 'invalid_client' }, { status: 400 })
}

const at = inConsole({ fetch })
const { button, heading } = at

testInChromium(
  'CON-25 the console shows which claims an application would get about a person, or why it gets none',
  async () => {
    const { page, served } = at
    await create(served.app, '/apis', {
      identifier: 'https://orders.example',
      name: 'Orders',
      scopes: [{ name: 'orders.read', texts: { en: 'Read orders' } }],
      clients: [{ client_id: 'shop', scopes: ['orders.read'] }],
    })
    await enterConsole(page, served.url, '/console/clients/shop')
    await heading('Northwind shop')
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Test sign-in' }) })
    await card.getByText('ada@example.com').waitFor()
    await button('Choose another').click()
    await page.waitForFunction(() => document.activeElement?.id === 'person')
    await card.getByRole('searchbox', { name: 'Person' }).fill('grace')
    await card.getByRole('button', { name: /Grace Example/ }).click()
    await card.getByLabel('API').selectOption('Orders')
    expect(await card.getByLabel('Scopes').inputValue()).toBe('openid profile email orders.read')
    await button('Show the claims').click()
    const claims = card.getByRole('status')
    await claims.getByText('In tokens, sub is the user’s ID without usr_.').waitFor()
    await claims.getByText('"given_name": "Grace"').first().waitFor()
    await claims.getByText('Access token').click()
    await claims.getByText('"aud": "https://orders.example"').waitFor()
    expect(await axeFindings(page)).toEqual([])

    await served.app.admin('PUT', '/clients/shop', { allowed_roles: ['admin'] })
    await button('Show the claims').click()
    await claims.getByText('The client does not admit this user.').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await card.getByLabel('Scopes').fill('openid')
    await claims.waitFor({ state: 'detached' })
    await button('Show the claims').click()
    await claims.waitFor()
    await button('Choose another').click()
    await claims.waitFor({ state: 'detached' })
    await card.getByRole('searchbox', { name: 'Person' }).fill('alan')
    await card.getByRole('button', { name: /Alan Example/ }).click()
    await button('Show the claims').waitFor()
    expect(await claims.count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-25 the chosen person stays when the account of the administrator is read later',
  async () => {
    const { page, served } = at
    const { id } = (await at.stored('/users?search=ada')).data[0]
    const own = Promise.withResolvers<void>()
    await page.route(`**/users/${id}`, async route => {
      await own.promise
      await route.continue()
    })
    await enterConsole(page, served.url, '/console/clients/shop')
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Test sign-in' }) })
    await card.getByRole('button', { name: /Grace Example/ }).click()
    own.resolve()
    await at.answered()
    await button('Show the claims').click()
    await card.getByText('"given_name": "Grace"').first().waitFor()
  },
  120_000,
)

testInChromium(
  'CON-26 the console tests the connection to an identity provider, each check good or bad, before it is on',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/identity-providers')
    await heading('Identity providers')
    await button('Add a provider').click()
    await page.getByRole('combobox', { name: 'Provider' }).selectOption('oidc')
    for (const [label, value] of [
      ['Name', 'Acme staff'],
      ['Alias', 'acme'],
      ['Issuer', ISSUER],
      ['Client ID at the provider', 'gatehouse'],
      ['Client secret at the provider', 'wrong'],
    ] as const)
      await page.getByLabel(label, { exact: true }).fill(value)
    await page.locator('dialog [type=submit]').click()
    await heading(/Acme staff/)
    await button('Test the connection').click()
    const result = page.getByRole('listitem').filter({ hasText: 'Client ID and secret' })
    await result.getByText('wrong', { exact: true }).waitFor()
    await page.getByText('A sign-in would fail').waitFor()
    expect(await axeFindings(page)).toEqual([])

    await button('Enter a new secret').click()
    await page.getByRole('dialog').getByLabel('Client secret at the provider').fill('right')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await button('Test the connection').click()
    await result.getByText('fine', { exact: true }).waitFor()
    await page.getByText('A sign-in would work').waitFor()
    expect(await at.stored('/identity-providers/acme')).toMatchObject({ enabled: false })
  },
  120_000,
)

testInChromium(
  'CON-25 the test of a sign-in offers each API of the application, among more than one page of APIs',
  async () => {
    const { page, served } = at
    const clients = [{ client_id: 'shop', scopes: [] }]
    await create(served.app, '/apis', { identifier: 'https://orders.example', name: 'Orders', clients })
    for (let n = 0; n < 100; n++)
      await create(served.app, '/apis', { identifier: `https://${n}.example`, name: `API ${n}` })
    await enterConsole(page, served.url, '/console/clients/shop')
    const api = page.getByRole('combobox', { name: 'API' })
    await api.selectOption('Show more')
    await api.locator('option', { hasText: 'Orders' }).waitFor({ state: 'attached' })
    await api.selectOption('Orders')
    await button('Show the claims').click()
    await page.getByText('"aud": "https://orders.example"').waitFor({ state: 'attached' })
  },
  120_000,
)
