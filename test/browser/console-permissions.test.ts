/** Tests in a browser what the console offers to administrators who have only some permissions. */
import { expect } from 'bun:test'
import { permissions } from '#src/lib/permission.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

const at = inConsole()
const { button } = at

/** Opens the console as a user who has only these permissions. */
const enterWith = async (permissions: string[]) => {
  await create(at.served.app, '/roles', { name: 'limited', permissions })
  await addUser(at.served.app, 'helen', { roles: ['user', 'limited'] })
  await enterConsole(at.page, at.served.url, '/console', 'helen')
  await at.heading('Overview')
}

/** Returns the buttons, and the links that look like buttons, in the current screen. */
const buttons = async (): Promise<string[]> =>
  (await at.page.locator('main :is(button, a.button):enabled').allInnerTexts()).map(text => text.trim())

testInChromium(
  'CON-09 a person who may only read is offered no change on any screen, and no call is refused',
  async () => {
    const { page, served } = at
    const paths = await fillConsole(served.app)
    const refused: string[] = []
    page.on('response', answer => {
      if (answer.url().includes('/api/v1/admin/') && answer.status() >= 400) refused.push(answer.url())
    })
    await enterWith(permissions.filter(name => name.endsWith(':read')))
    for (const path of paths.filter(path => !path.endsWith('new'))) {
      await at.walk(path.slice(1))
      await at.answered()
      const changes = page
        .locator('main :is(.danger, .primary, .pick, .form :is(input, textarea, select):enabled)')
        .or(page.locator('main fieldset :is(button, [type=file]):visible'))
      expect([path, await changes.count()]).toEqual([path, 0])
      expect([path, await page.getByRole('link', { name: /^(?:Give it|Choose a group)/ }).count()]).toEqual([
        path,
        0,
      ])
      expect([
        path,
        (await buttons()).filter(text =>
          /^(?:Disable|End|Make a new secret|Rotate|Back up|Send|Add)\b/.test(text),
        ),
      ]).toEqual([path, []])
      expect([path, await page.locator('main [role=alert]').count()]).toEqual([path, 0])
    }
    expect(refused).toEqual([])
    await at.walk('identity-providers/google')
    expect(await page.locator('.facts').getByRole('button', { name: 'Copy' }).isEnabled()).toBe(true)
    await at.walk('looks/default')
    const theme = page.locator('select:disabled')
    expect(await theme.evaluate(select => getComputedStyle(select).opacity)).toBe('1')
  },
  300_000,
)

testInChromium(
  'CON-09 a person who may change webhooks but not read events is offered only to delete them',
  async () => {
    const { page, served } = at
    const { id } = await create(served.app, '/webhooks', {
      name: 'Relay',
      url: 'https://192.0.2.1/',
      events: ['*'],
    })
    await enterWith(permissions.filter(name => name.startsWith('webhooks:')))
    await at.walk(`webhooks/${id}`)
    await page.locator('[name=url]:disabled').waitFor()
    expect(await button('Make a new secret').count()).toBe(0)
    expect(await button('Delete').count()).toBe(1)
    await at.walk('webhooks')
    await at.heading('Webhooks')
    expect(await button('Add a webhook').count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-09 a person who may not read applications gets no link to those of a user',
  async () => {
    const { page, served } = at
    const client = await addClient(served.app, 'board', { name: 'The board' })
    const user = (await at.stored('/users?search=grace')).data[0]
    await grantTokens(served.app, client, user)
    await enterWith(['users:read', 'sessions:read'])
    await at.walk(`users/${user.id}`)
    await page.getByText('The board').waitFor()
    expect(await page.getByRole('link', { name: /The board/ }).count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-09 a person who may change users sees no card and no button that would be refused',
  async () => {
    const { page } = at
    const { id } = (await at.stored('/users?search=grace')).data[0]
    await enterWith(['users:read', 'users:update'])
    await at.walk(`users/${id}`)
    await at.heading('Grace Example')
    await at.answered()
    expect(await page.locator('main [role=alert]').count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
    const offered = await buttons()
    expect(offered).toContain('Disable')
    for (const action of ['Sign out everywhere', 'Delete']) expect(offered).not.toContain(action)
    await page.getByLabel('First name').fill('Amazing')
    await at.save()
    await at.heading('Amazing Example')
    await button('Disable').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
    await button('Enable').waitFor()
    expect(await at.stored(`/users/${id}`)).toMatchObject({ first_name: 'Amazing', enabled: false })
    await at.walk('users')
    await page.getByLabel('Select alan').check()
    const bulk = page.getByRole('toolbar').getByRole('button')
    expect(await bulk.allInnerTexts()).toEqual(['Disable', 'Enable', 'Cancel'])
  },
  120_000,
)

testInChromium(
  'CON-09 a person who may not read users gets no link to one from sessions and members of groups',
  async () => {
    const { page, served } = at
    const client = await addClient(served.app, 'board')
    const [user] = (await at.stored('/users?search=grace')).data
    await grantTokens(served.app, client, user)
    const { id } = await create(served.app, '/groups', { name: 'Warehouse', roles: ['user'] })
    await served.app.admin('PUT', `/groups/${id}/members/${user.id}`)
    await enterWith(['sessions:read', 'groups:read'])
    for (const path of ['sessions', `groups/${id}`]) {
      await at.walk(path)
      await page.getByRole('main').getByText('grace', { exact: true }).waitFor()
      expect([path, await page.locator('main a[href*="/console/users/"]').count()]).toEqual([path, 0])
    }
  },
  120_000,
)

testInChromium(
  'CON-09 a person is offered only roles and groups for an invitation that the person may give',
  async () => {
    const { page, served } = at
    const reads = ['users:read', 'users:create', 'roles:read', 'groups:read']
    await create(served.app, '/roles', { name: 'reader', permissions: ['users:read'] })
    await create(served.app, '/groups', { name: 'Readers', roles: ['reader'] })
    await create(served.app, '/groups', { name: 'Chiefs', roles: ['admin'] })
    const optionsOf = (name: string) =>
      page.getByRole('combobox', { name, exact: true }).locator('option:not([value=""])')
    await enterWith([...reads, 'groups:update'])
    await at.walk('invitations')
    await button('Invite a person').click()
    await optionsOf('Groups').waitFor({ state: 'attached' })
    expect(await optionsOf('Roles').allInnerTexts()).toEqual(['limited', 'reader'])
    expect(await optionsOf('Groups').allInnerTexts()).toEqual(['Readers'])

    const [{ id }] = (await at.stored('/roles?search=limited')).data
    await served.app.admin('PUT', `/roles/${id}`, { permissions: reads })
    await page.goto(`${served.url}/console/invitations`)
    await button('Invite a person').click()
    await optionsOf('Roles').first().waitFor({ state: 'attached' })
    await at.answered()
    expect(await optionsOf('Groups').count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-09 a person who may add users but not read them sees the overview after adding one',
  async () => {
    const { page } = at
    await enterWith(['users:create'])
    await at.walk('users/new')
    for (const [name, value] of [
      ['username', 'dora'],
      ['email', 'dora@example.com'],
      ['first_name', 'Dora'],
      ['last_name', 'Example'],
    ] as const)
      await page.locator(`[name=${name}]`).fill(value)
    await button('Add the user').click()
    await at.heading('Overview')
    expect((await at.stored('/users?search=dora')).data).toHaveLength(1)
    expect((await at.stored('/events?type=user.created')).data[0]).toMatchObject({
      actor_email: 'helen@example.com',
    })
  },
  120_000,
)

testInChromium(
  'CON-09 without a permission for the organization, attributes keep their types and no YAML is offered',
  async () => {
    const { page, served } = at
    const user_attributes = [
      { name: 'level', type: 'integer' },
      { name: 'vip', type: 'boolean' },
      { name: 'teams', type: 'array' },
      { name: 'note', type: 'string' },
    ]
    const { id: organization_id } = await addOrganization(served.app, 'acme', {
      settings: { user_attributes },
    })
    const role = await create(served.app, '/roles', {
      name: 'desk',
      permissions: ['users:read', 'users:update', 'roles:read'],
      organization_id,
    })
    await addUser(served.app, 'helen', { organization_id, roles: ['user', 'desk'] })
    const { id } = await addUser(served.app, 'carol', {
      organization_id,
      attributes: { level: 3, vip: true, teams: ['red'], note: '1', limit: 5, tags: ['x'], rates: [1] },
    })
    await enterConsole(page, served.url, `/console?organization=${organization_id}`, 'helen')
    await at.walk(`users/${id}`)
    const others = { limit: '1e400', tags: 'null', rates: '[1e400]' }
    const changes = { level: '4', vip: 'false', teams: '["red", "blue"]', note: '2', ...others }
    for (const [name, value] of Object.entries(changes))
      await page.locator(`[name="attributes.${name}"]`).fill(value)
    await at.save()
    const attributes = { level: 4, vip: false, teams: ['red', 'blue'], note: '2', ...others }
    expect((await at.stored(`/users/${id}`)).attributes).toEqual(attributes)
    expect((await at.stored(`/events?type=user.updated&target_id=${id}`)).data).toHaveLength(1)
    for (const path of [`users/${id}`, `roles/${role.id}`]) {
      await at.walk(path)
      await page.getByText('As curl').last().waitFor()
      expect([path, await page.getByText('As YAML').count()]).toEqual([path, 0])
    }
  },
  120_000,
)
