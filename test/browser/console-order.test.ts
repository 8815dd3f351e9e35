/** Tests the order of the parts on screens of the console, in a browser. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addClient, addOrganization } from '#test/support/people.ts'

const at = inConsole({}, { reducedMotion: 'reduce' })
const { stored } = at

testInChromium(
  'CON-49 the audit log shows neighbours of one type, actor and address in one line, which expands',
  async () => {
    const { app, url } = at.served
    const { client_secret } = await addClient(app, 'job', {
      grant_types: ['client_credentials'],
      redirect_uris: [],
      scopes: ['users:read'],
    })
    for (let n = 0; n < 5; n++) await app.tokenOf('job', client_secret)
    await enterConsole(at.page, url, '/console/events')
    const run = at.page.locator('main .card > .rows > li', { hasText: /Token issued\s*× 5/ })
    await run.getByRole('button').click()
    expect(await run.locator('li.event').count()).toBe(5)
    expect(await axeFindings(at.page)).toEqual([])
    await run.locator('li.event').last().getByRole('button').click()
    await run.getByText('token.issued').waitFor()

    await at.page.getByLabel('Event').selectOption('token.issued')
    await at.page.waitForURL(/type=token.issued/)
    await at.page.locator('li.event.run').waitFor({ state: 'detached' })
    // The list is empty until the console has loaded the filtered events.
    await at.page.locator('main .card > .rows > li').nth(5).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-49 roles of several organizations stand on a card each, the own organization first',
  async () => {
    const { app, url } = at.served
    const { id } = await addOrganization(app, 'acme', { name: 'Acme' })
    await create(app, '/roles', { name: 'support', permissions: [], organization_id: id })
    await enterConsole(at.page, url, '/console/roles')
    await at.page.getByRole('heading', { level: 2, name: 'Acme' }).waitFor()
    const titles = await at.page.getByRole('heading', { level: 2 }).allInnerTexts()
    expect(titles).toEqual(['Gatehouse', 'Acme'])
    const card = at.page.locator('.card', { has: at.page.getByRole('heading', { name: 'Acme' }) })
    await card.getByRole('link', { name: /support/ }).waitFor()
    await at.page.getByRole('combobox', { name: 'Organization' }).fill('acme')
    await at.page.getByRole('link', { name: /admin/ }).nth(1).waitFor({ state: 'detached' })
    await at.page.getByRole('link', { name: /support/ }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-49 a list without rows takes one line on the screen of a user, and no heading stands alone',
  async () => {
    const { app, url } = at.served
    const user_attributes = [{ name: 'level', type: 'integer' }]
    await app.admin('PUT', '/organizations/default', { settings: { user_attributes } })
    const { id } = (await stored('/users?search=grace')).data[0]
    await enterConsole(at.page, url, `/console/users/${id}`)
    for (const text of [
      'No second factor',
      'In no group',
      'None with a consent or an open session',
      'No sessions',
    ])
      await at.page.getByText(text).waitFor()
    expect(await at.page.locator('main .empty').count()).toBe(0)
    const others = at.page.getByRole('heading', { name: 'Attributes without a definition' })
    await at.page.getByLabel('level').waitFor()
    expect(await others.count()).toBe(0)
    await at.button('Add an attribute').click()
    await others.waitFor()
    await at.page.getByText('Only administrators see and change them.').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-49 a group without members says so in one line',
  async () => {
    const { id } = await create(at.served.app, '/groups', { name: 'Staff' })
    await enterConsole(at.page, at.served.url, `/console/groups/${id}`)
    const card = at.page.locator('.card', { has: at.page.getByRole('heading', { name: 'Members' }) })
    await card.getByText('No members yet').waitFor()
    expect(await at.page.locator('main .empty').count()).toBe(0)
    await at.page.getByLabel('Search users').fill('grace')
    await at.button('Add · grace').click()
    await card.getByRole('button', { name: 'Remove' }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-49 the button that deletes an object is the last one of its screen',
  async () => {
    const { app, url } = at.served
    const paths = await fillConsole(app)
    await enterConsole(at.page, url)
    const kinds = ['users', 'clients', 'apis', 'roles', 'groups', 'identity-providers', 'webhooks']
    const screens = [
      ...paths.filter(path => kinds.some(kind => path.startsWith(`/${kind}/`)) && !/\/\+?new$/.test(path)),
      '/organizations/acme',
    ]
    expect(screens).toHaveLength(kinds.length + 1)
    for (const path of screens) {
      await at.walk(path.slice(1))
      await at.button('Delete').waitFor()
      const buttons = await at.page.locator('main').locator('button, a.button').allInnerTexts()
      expect([path, buttons.at(-1)]).toEqual([path, 'Delete'])
    }
  },
  120_000,
)
