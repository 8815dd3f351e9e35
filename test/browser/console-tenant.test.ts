/** Tests the console of a tenant's administrator in a browser. */
import { expect } from 'bun:test'
import type { Response } from 'playwright-core'
import type { Json } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'

const at = inConsole()

/** Adds one object of each kind to an organization. The names of the objects begin with `slug`. */
const fill = async (slug: string, organization_id: string) => {
  const { app } = at.served
  const name = `${slug}-thing`
  const of = { name, organization_id }
  const user = await addUser(app, `${slug}-user`, { organization_id })
  const role = await create(app, '/roles', { ...of, permissions: [] })
  const group = await create(app, '/groups', of)
  await addClient(app, `${slug}-client`, of)
  const api = await create(app, '/apis', { ...of, identifier: `https://${slug}.example` })
  const hook = await create(app, '/webhooks', { ...of, url: 'https://192.0.2.1/', events: ['*'] })
  const google = { type: 'oidc', preset: 'google', client_id: 'x', client_secret: 'y' }
  await create(app, '/identity-providers', { ...google, ...of, alias: `${slug}-idp` })
  return [
    ...[`users/${user.id}`, `roles/${role.id}`, `groups/${group.id}`, `clients/${slug}-client`],
    ...[`apis/${api.id}`, `webhooks/${hook.id}`, `identity-providers/${slug}-idp`],
    `organizations/${organization_id}`,
  ]
}

/** Returns the values of all members with this name, at any depth of an answer. */
const valuesOf = (member: string, value: unknown): unknown[] =>
  Array.isArray(value)
    ? value.flatMap(each => valuesOf(member, each))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, inner]) =>
          name === member ? [inner] : valuesOf(member, inner),
        )
      : []

testInChromium(
  'CON-31 a tenant’s administrator is offered the own organization, and nothing of the server',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme', { name: 'Acme' })
    await addUser(served.app, 'bob', { organization_id: id, roles: ['admin'] })
    await enterConsole(page, served.url, `/console?organization=${id}`, 'bob')
    const menu = page.getByRole('navigation', { name: 'Menu' })
    await menu.getByRole('link', { name: 'Organization', exact: true }).click()
    await at.heading('Acme')
    expect(
      await menu.getByRole('link', { name: 'Organization', exact: true }).getAttribute('aria-current'),
    ).toBe('page')
    expect(page.url()).toEndWith(`/console/organizations/${id}`)
    expect(await at.button('Delete').count()).toBe(0)
    await page.locator('.actions').getByRole('link', { name: 'Looks' }).click()
    await at.heading('Looks')
    expect(await menu.locator('[aria-current=page]').innerText()).toBe('Organization')
    await page.locator('a.back').click()
    await at.heading('Acme')
    await page.locator('a.back').click()
    await at.heading('Overview')

    await page.keyboard.press('Control+k')
    const options = page.getByRole('option')
    await options.filter({ hasText: 'Add a role' }).waitFor()
    const texts = (await options.allInnerTexts()).map(text => text.split('\n')[0])
    expect(texts).toContain('Organization')
    for (const title of ['Settings', 'Organizations', 'Add an organization'])
      expect(texts).not.toContain(title)
  },
  120_000,
)

testInChromium(
  'CON-31 a tenant’s administrator gives a new user the roles and groups whose permissions the caller has',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme')
    await addUser(served.app, 'bob', { organization_id: id, roles: ['admin'] })
    const admins = await create(served.app, '/groups', {
      name: 'Admins',
      roles: ['admin'],
      organization_id: id,
    })
    await enterConsole(page, served.url, `/console/users/new?organization=${id}`, 'bob')
    await page.getByLabel(/^Admins/).check()
    await page.getByLabel(/^admin/).check()
    for (const name of ['username', 'first_name', 'last_name'])
      await page.locator(`[name=${name}]`).fill('carol')
    await page.locator('[name=email]').fill('carol@example.com')
    await at.button('Add the user').click()
    await at.heading('carol carol')
    const [carol] = (await at.stored('/users?search=carol')).data
    expect(carol).toMatchObject({ organization_id: id, roles: ['admin', 'user'] })
    expect((await at.stored(`/groups?user_id=${carol.id}`)).data[0]).toMatchObject({ id: admins.id })
    const [given] = (await at.stored(`/events?type=user.created&target_id=${carol.id}`)).data
    expect(given).toMatchObject({ metadata: { roles_added: ['admin', 'user'] } })
  },
  120_000,
)

testInChromium(
  'CON-31 a new tab belongs to the signed-in tenant, unless somebody is signed in at the default organization',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme', { name: 'Acme' })
    const bob = await addUser(served.app, 'bob', { organization_id: id, roles: ['admin'] })
    await enterConsole(page, served.url, `/console?organization=${id}`, 'bob')
    const openTab = async () => {
      const link = page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Users' })
      const [tab] = await Promise.all([
        page.context().waitForEvent('page'),
        link.click({ modifiers: ['Control'] }),
      ])
      await tab.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
      await tab.getByRole('row').nth(1).waitFor()
      return tab
    }
    const tab = await openTab()
    expect(await tab.locator('tbody tr').count()).toBe(1)
    expect((await at.stored(`/sessions?user_id=${bob.id}`)).data).toMatchObject([
      { client_id: 'gatehouse-console', organization_id: id },
    ])
    expect((await at.stored('/events?type=user.login_failed')).data).toEqual([])

    await enterConsole(tab, served.url, '/console?organization=org_default', 'ada')
    expect(await (await openTab()).locator('tbody tr').count()).toBe(5)
  },
  120_000,
)

testInChromium(
  'CON-31 "Sign in with another account" leads from a tenant’s user to the default organization',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme')
    await addUser(served.app, 'bob', { organization_id: id })
    await enterConsole(page, served.url, `/console?organization=${id}`, 'bob')
    await page.getByRole('button', { name: 'Sign in with another account' }).click()
    await page.locator('[name=username]').fill('ada')
    await page.locator('[name=password]').fill(PASSWORD)
    await page.locator('[name=password]').press('Enter')
    await at.heading('Overview')
    const sessions = (await at.stored('/sessions?client_id=gatehouse-console')).data
    expect(sessions.map((session: Json) => session.organization_id)).toEqual(['org_default', id])
    expect((await at.stored('/events?type=user.login_failed')).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-31 a tab whose organization was deleted can sign in again, at the default organization',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme')
    await addUser(served.app, 'bob', { organization_id: id, roles: ['admin'] })
    await enterConsole(page, served.url, `/console?organization=${id}`, 'bob')
    await at.heading('Overview')
    await served.app.admin('DELETE', `/organizations/${id}`)
    await page.goto(`${served.url}/console`)
    await page.getByText('The parameter organization_id is invalid.').waitFor()
    await page.getByRole('link', { name: 'Try again' }).click()
    await page.locator('[name=username]').fill('ada')
    await page.locator('[name=password]').fill(PASSWORD)
    await page.locator('[name=password]').press('Enter')
    await at.heading('Overview')
  },
  120_000,
)

testInChromium(
  'CON-31 a tenant’s administrator gets nothing of another organization, at no call of any screen',
  async () => {
    const { page, served } = at
    const acme = await addOrganization(served.app, 'acme')
    const beta = await addOrganization(served.app, 'beta')
    const own = await fill('acme', acme.id)
    const foreign = await fill('beta', beta.id)
    await addUser(served.app, 'bob', { organization_id: acme.id, roles: ['admin'] })

    const answers: Response[] = []
    page.on('response', answer => {
      if (answer.url().includes('/api/v1/admin/')) answers.push(answer)
    })
    await page.goto(`${served.url}/console?organization=acme`)
    await page.locator('[name=username]').fill('bob')
    await page.locator('[name=password]').fill(PASSWORD)
    await page.locator('[name=password]').press('Enter')
    await page.waitForURL(`${served.url}/console?organization=${acme.id}`)
    const menu = page.getByRole('navigation')
    await menu.getByRole('link').first().waitFor()
    const lists = await menu
      .getByRole('link')
      .evaluateAll(links => links.map(link => link.getAttribute('href')?.replace('/console/', '') ?? ''))
    expect(lists).not.toContain('settings')
    expect(lists).toContain(`organizations/${acme.id}`)
    expect(lists.length).toBeGreaterThan(8)
    for (const path of [
      ...lists.filter(href => !href.startsWith('/console') && !href.startsWith('guide')),
      ...own,
    ]) {
      await at.walk(path)
      expect([path, await page.getByText('Not found', { exact: true }).count()]).toEqual([path, 0])
      expect([path, await page.getByText(/beta-/).count()]).toEqual([path, 0])
    }
    expect(answers.filter(answer => answer.status() >= 400).map(answer => answer.url())).toEqual([])
    for (const path of foreign) {
      await at.walk(path)
      await page.getByText('Not found', { exact: true }).first().waitFor()
    }
    expect(answers.length).toBeGreaterThan(30)
    for (const answer of answers) {
      const text = await answer.text()
      const path = answer.url().replace(served.url, '')
      expect([path, text.includes('beta-')]).toEqual([path, false])
      const named = /json/.test(answer.headers()['content-type'] ?? '')
        ? valuesOf('organization_id', JSON.parse(text))
        : []
      expect([path, named.filter(id => id !== acme.id)]).toEqual([path, []])
    }
  },
  300_000,
)
