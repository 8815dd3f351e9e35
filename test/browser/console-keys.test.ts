/** Tests in a browser how the console takes the key of a provider, and shows the key of a webhook. */
import { expect } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'

const at = inConsole()
const { button, stored } = at

const newKey = (): string =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

testInChromium(
  'CON-13 the private key of an Apple provider is replaced by another one, which has several lines',
  async () => {
    const { page, served } = at
    const ids = { client_id: 'com.example', team_id: 'TEAM123456', key_id: 'KEY1234567' }
    await create(served.app, '/identity-providers', {
      type: 'oidc',
      preset: 'apple',
      name: 'Apple',
      alias: 'apple',
      ...ids,
      client_secret: newKey(),
    })
    await enterConsole(page, served.url, '/console/identity-providers/apple')
    await button('Enter a new secret').click()
    await served.app.events()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Client secret at the provider').fill(newKey())
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await served.app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['identity_provider.updated', ['client_secret']],
    ])
  },
  120_000,
)

testInChromium(
  'CON-20 the public key of a webhook is shown at any time, and again after a new one is made',
  async () => {
    const { page, served } = at
    const url = 'https://warehouse.example.com/events'
    const hook = { name: 'Warehouse', url, events: ['user.*'], signature: 'v1a' }
    const { id, public_key } = await create(served.app, '/webhooks', hook)
    await enterConsole(page, served.url, `/console/webhooks/${id}`)
    const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Public key' }) })
    await card.getByText(public_key).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await button('Make a new secret').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make a new secret' }).click()
    const shown = await page.getByRole('dialog', { name: 'Public key' }).locator('code').innerText()
    expect(shown).not.toBe(public_key)
    await button('Close').click()
    await card.getByText(shown).waitFor()
    expect((await stored(`/webhooks/${id}`)).public_key).toBe(shown)
  },
  120_000,
)
