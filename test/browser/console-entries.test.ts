/** Tests which entries of a form the console keeps, and which it discards. */
import { expect } from 'bun:test'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { holdCalls } from '#test/support/held-calls.ts'

const at = inConsole()
const { button, stored } = at

/** Opens the screen of the user `grace`. Returns the user's path in the API. */
const openGrace = async (): Promise<string> => {
  const { id } = (await stored('/users?search=grace')).data[0]
  await enterConsole(at.page, at.served.url, `/console/users/${id}`)
  await at.heading('Grace Example')
  return `/users/${id}`
}

testInChromium(
  'CON-28 what is typed while a save runs stays unsaved in its field',
  async () => {
    const { page } = at
    const path = await openGrace()
    const [first, last] = [page.getByLabel('First name'), page.getByLabel('Last name')]
    const calls = await holdCalls(page, 'PUT')
    await first.fill('Sent')
    await button('Save changes').click()
    await calls.held
    await last.fill('Later')
    await first.fill('Grace')
    calls.release()
    await at.heading('Sent Example')
    expect([await first.inputValue(), await last.inputValue()]).toEqual(['Grace', 'Later'])
    await at.save()
    await at.heading('Grace Later')
    expect(await stored(path)).toMatchObject({ first_name: 'Grace', last_name: 'Later' })
  },
  120_000,
)

testInChromium(
  'CON-28 what was typed stays when the object cannot be read again after another change',
  async () => {
    const { page, served } = at
    const { id } = (await stored('/users?search=grace')).data[0]
    await served.app.admin('PUT', `/users/${id}`, { enabled: false })
    await openGrace()
    const name = page.getByLabel('First name')
    await name.fill('Kept')
    const failure = { status: 503, error: 'unavailable', error_description: 'The database is busy.' }
    await page.route(`**/users/${id}`, (route, request) =>
      request.method() === 'GET' ? route.fulfill({ status: 503, json: failure }) : route.continue(),
    )
    await button('Enable').click()
    await page.getByText(failure.error_description).waitFor()
    expect((await stored(`/users/${id}`)).enabled).toBe(true)
    expect(await name.inputValue()).toBe('Kept')
    await button('Save changes').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-28 discarded addresses, scopes, events and themes do not come back with the next change',
  async () => {
    const { page, served } = at
    const url = 'https://warehouse.example.com/events'
    const hook = await create(served.app, '/webhooks', { name: 'Warehouse', url, events: ['user.*'] })
    const client = await stored('/clients/shop')
    await enterConsole(page, served.url)
    const cases: [path: string, field: string, kept: string, section?: string, other?: string][] = [
      ['clients/shop', 'redirect_uris', client.redirect_uris.join('\n'), 'addresses', 'web_origins'],
      ['clients/shop', 'scopes', 'openid profile email', 'tokens', 'access_token_ttl'],
      [`webhooks/${hook.id}`, 'events', 'user.*', '', 'name'],
    ]
    for (const [path, name, kept, section, other] of cases) {
      await at.walk(section ? `${path}#${section}` : path)
      const field = page.locator(`[name="${name}"]`)
      expect([name, await field.inputValue()]).toEqual([name, kept])
      await field.fill('https://discarded.example')
      await page.locator('.save-bar').getByRole('button', { name: 'Cancel' }).click()
      await button('Save changes').waitFor({ state: 'detached' })
      await page.locator(`[name="${other}"]`).fill('5m')
      await button('Save changes').waitFor()
      expect([name, await field.inputValue()]).toEqual([name, kept])
    }

    await at.walk('looks/default')
    await page.locator('select[name="settings.theme"]').selectOption('')
    await page.locator('input[name="settings.theme"]').fill('own')
    await page.locator('.save-bar').getByRole('button', { name: 'Cancel' }).click()
    await page.locator('input[name="settings.theme"]').waitFor({ state: 'detached' })
    expect(await page.locator('select[name="settings.theme"]').inputValue()).toBe('default')
  },
  120_000,
)
