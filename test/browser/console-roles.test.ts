/** Tests in a browser that each role can be reached in the console, even when roles fill several pages. */
import { expect } from 'bun:test'
import type { Route } from 'playwright-core'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addOrganization } from '#test/support/people.ts'

const at = inConsole()
const { stored } = at
const check = (name: string | RegExp) => at.page.getByRole('checkbox', { name })
const search = () => at.page.getByRole('searchbox')
const main = () => at.page.locator('main')

/**
 * Makes a role, and then more roles than a list of the console loads at once. The lists begin with the newest
 * role.
 */
const makeRoles = async (): Promise<void> => {
  const { app } = at.served
  await create(app, '/roles', { name: 'oldest', description: 'The first', permissions: ['webhooks:delete'] })
  for (let n = 0; n < 110; n++)
    await create(app, '/roles', { name: `role-${n}`, permissions: ['users:read'] })
}

testInChromium(
  'CON-55 a user, a new user and a group get a role that is not on the first page of roles',
  async () => {
    await makeRoles()
    const { app, url } = at.served
    const [grace] = (await stored('/users?search=grace')).data
    await enterConsole(at.page, url, `/console/users/${grace.id}`)
    await check(/^role-109/).waitFor()
    expect(await check(/^oldest/).count()).toBe(0)
    expect(await check(/^user/).isChecked()).toBe(true)
    await search().fill('OLD')
    await check(/^oldest The first/).check()
    await search().press('Enter')
    expect((await stored(`/users/${grace.id}`)).roles).toEqual(['user'])
    expect(await axeFindings(at.page)).toEqual([])
    await search().fill('nothing like that')
    await main().getByText('Nothing found.').waitFor()
    await search().fill('')
    await check(/^role-109/).waitFor()
    expect(await check(/^oldest The first/).isChecked()).toBe(true)
    await at.save()
    expect((await stored(`/users/${grace.id}`)).roles).toEqual(['oldest', 'user'])
    await check(/^oldest/).uncheck()
    await at.save()
    expect((await stored(`/users/${grace.id}`)).roles).toEqual(['user'])

    await at.walk('users/new')
    for (const name of ['Username', 'First name', 'Last name'])
      await at.page.getByLabel(name, { exact: true }).fill('dorothy')
    await at.page.getByLabel('Email', { exact: true }).fill('dorothy@example.com')
    await search().fill('oldest')
    await check(/^oldest/).check()
    await at.button('Add the user').click()
    await at.heading('dorothy dorothy')
    expect((await stored('/users?search=dorothy')).data[0].roles).toEqual(['oldest', 'user'])

    const group = await create(app, '/groups', { name: 'Warehouse', roles: [] })
    await at.walk(`groups/${group.id}`)
    await check(/^role-109/).waitFor()
    const more = main().getByRole('button', { name: 'Show more' })
    await more.click()
    await check(/^role-59/).waitFor()
    await more.click()
    await check(/^oldest The first/).check()
    await at.save()
    expect((await stored(`/groups/${group.id}`)).roles).toEqual(['oldest'])
  },
  120_000,
)

testInChromium(
  'CON-55 a new user joins a group that is not on the first page of groups',
  async () => {
    const { app, url } = at.served
    const oldest = await create(app, '/groups', { name: 'Oldest', roles: ['user'] })
    for (let n = 0; n < 55; n++) await create(app, '/groups', { name: `Group ${n}`, roles: [] })
    await enterConsole(at.page, url, '/console/users/new')
    for (const name of ['Username', 'First name', 'Last name'])
      await at.page.getByLabel(name, { exact: true }).fill('dorothy')
    await at.page.getByLabel('Email', { exact: true }).fill('dorothy@example.com')
    await check(/^Group 54/).waitFor()
    await main().getByRole('button', { name: 'Show more' }).click()
    await check(/^Oldest/).check()
    await at.button('Add the user').click()
    await at.heading('dorothy dorothy')
    expect((await stored(`/groups/${oldest.id}/members`)).data).toHaveLength(1)
  },
  120_000,
)

testInChromium(
  'CON-55 an invitation, a scope and the admission of an application get a role of the last page',
  async () => {
    await makeRoles()
    const { app, url } = at.served
    const api = await create(app, '/apis', {
      identifier: 'https://orders.example.com',
      name: 'Orders',
      scopes: [{ name: 'orders.read', texts: {} }],
    })
    const choose = async (name: string, label: string, onSecondPage: string[] = []) => {
      const choice = at.page.getByRole('combobox', { name, exact: true })
      const hasOption = (label: string) =>
        choice.locator('option', { hasText: label }).waitFor({ state: 'attached' })
      for (const next of [...onSecondPage, label]) {
        await hasOption('Show more')
        await choice.selectOption('Show more')
        await hasOption(next)
      }
      expect(await choice.locator('option', { hasText: 'Show more' }).count()).toBe(0)
      await choice.selectOption(label)
    }
    await enterConsole(at.page, url, '/console/invitations')
    await at.button('Invite a person').click()
    await choose('Roles', 'oldest', ['role-59'])
    await at.button('Add · oldest').click()
    await at.button('Make the link').click()
    await at.button('Close').click()
    expect((await stored('/invitations')).data[0].roles).toEqual(['oldest', 'user'])

    await at.walk('clients/shop#admission')
    await choose('Roles', 'oldest')
    await at.button('Add · oldest').click()
    await at.save()
    expect((await stored('/clients/shop')).allowed_roles).toEqual(['oldest'])

    await at.walk(`apis/${api.id}#scopes`)
    await choose('Who gets it', 'People with the role oldest')
    await at.save()
    expect((await stored(`/apis/${api.id}`)).scopes[0].role).toBe('oldest')
    expect(await axeFindings(at.page)).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-55 the list of roles is searched, and passes over pages without a role that has the permission',
  async () => {
    await makeRoles()
    await enterConsole(at.page, at.served.url, '/console/roles')
    const row = (name: string) => main().getByRole('link', { name: new RegExp(`^${name}`) })
    await row('role-109').waitFor()
    expect(await row('oldest').count()).toBe(0)
    await search().fill('OLDEST')
    await row('oldest').waitFor()
    await at.page.waitForFunction(() => document.querySelectorAll('main a.row').length === 1)
    await search().fill('nothing like that')
    await main().locator('.empty', { hasText: 'Nothing found.' }).waitFor()
    await search().fill('')
    await at.page.getByRole('combobox', { name: 'With the permission' }).selectOption('webhooks:delete')
    await row('oldest').waitFor()
    await row('admin').waitFor()
    expect(await axeFindings(at.page)).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-55 a role that nobody has, and a user without a group, say where to change it',
  async () => {
    const { app, url } = at.served
    const { id } = await create(app, '/roles', { name: 'helper', permissions: [] })
    await enterConsole(at.page, url, `/console/roles/${id}`)
    for (const [name, title] of [
      ['Give it to a user', 'Users'],
      ['Give it to a group', 'Groups'],
    ] as const) {
      await main().getByRole('link', { name }).click()
      await at.heading(title)
      await at.back()
    }
    const [grace] = (await stored('/users?search=grace')).data
    await at.walk(`users/${grace.id}`)
    await main().getByRole('link', { name: 'Choose a group' }).click()
    await at.heading('Groups')
  },
  120_000,
)

testInChromium(
  'CON-12 a built-in role is shown and cannot be edited, because the API refuses each change of it',
  async () => {
    const { app, url } = at.served
    const own = await create(app, '/roles', { name: 'helper', permissions: ['users:read'] })
    await enterConsole(at.page, url, `/console/roles/${own.id}`)
    await at.heading('helper')
    const description = at.page.getByLabel('Shown to administrators')
    expect([await description.isEnabled(), await check('delete').first().isEnabled()]).toEqual([true, true])
    const lead = at.page.getByText('You can give only permissions that you have.')
    await lead.waitFor()
    await at.walk('roles/role_admin')
    await at.heading('admin Built in')
    expect([await description.isEnabled(), await check('delete').first().isEnabled()]).toEqual([false, false])
    expect(await check('delete').first().isChecked()).toBe(true)
    expect(await lead.count()).toBe(0)
    expect(await axeFindings(at.page)).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-61 a list of several organizations says once that its next page failed, and a name is read again',
  async () => {
    const { page, served } = at
    const acme = await addOrganization(served.app, 'acme', { name: 'Acme' })
    await makeRoles()
    await create(served.app, '/roles', { name: 'helper', permissions: [], organization_id: acme.id })
    const failure = { error: 'server_error', error_description: 'Busy.', status: 503 }
    const fail = (route: Route) => route.fulfill({ status: 503, json: failure })
    await page.route(/\/organizations\/org_/, fail)
    await enterConsole(page, served.url, '/console/roles')
    await main().getByRole('heading', { level: 2, name: acme.id }).waitFor()
    await page.unroute(/\/organizations\/org_/)
    await at.walk('groups')
    await at.walk('roles')
    await main().getByRole('heading', { level: 2, name: 'Acme' }).waitFor()
    await page.route(/\/roles\?.*cursor=/, fail)
    await at.button('Show more').click()
    await page.getByText('Busy.').waitFor()
    expect(await page.getByText('Busy.').count()).toBe(1)
  },
  120_000,
)
