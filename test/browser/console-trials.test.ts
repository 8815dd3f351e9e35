/** Trials in the console: logins and connections. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'

const at = inConsole()
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
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Test login' }) })
    await card.getByText('ada@example.com').waitFor()
    await button('Choose another').click()
    await card.getByRole('searchbox', { name: 'Person' }).fill('grace')
    await card.getByRole('button', { name: /Grace Example/ }).click()
    await card.getByLabel('API').selectOption('Orders')
    expect(await card.getByLabel('Scopes').inputValue()).toBe('openid profile email orders.read')
    await button('Show the claims').click()
    const claims = card.getByRole('status')
    await claims.getByText('"given_name": "Grace"').first().waitFor()
    await claims.getByText('Access token').click()
    await claims.getByText('"aud": "https://orders.example"').waitFor()
    expect(await axeFindings(page)).toEqual([])

    await served.app.admin('PUT', '/clients/shop', { allowed_roles: ['admin'] })
    await button('Show the claims').click()
    await claims.getByText('The client does not admit this user.').waitFor()
    expect(await axeFindings(page)).toEqual([])
  },
  60_000,
)
