/** Tests in a browser how the console takes the key of a provider. */
import { expect } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'

const at = inConsole()
const { button } = at

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
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Client secret at the provider').fill(newKey())
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await served.app.events()).at(-1)).toMatchObject({
      type: 'identity_provider.updated',
      metadata: { fields: ['client_secret'] },
    })
  },
  60_000,
)
