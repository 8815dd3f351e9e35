/** Tests the console's screens for invitations, registrations and dynamic clients, in a browser. */
import { expect } from 'bun:test'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { addDynamicClient, addWaiting } from '#test/support/routes.ts'
import { grantTokens } from '#test/support/tokens.ts'

const at = inConsole()

const dialog = (name: string) => at.page.getByRole('dialog', { name })
const label = (name: string) => at.page.getByLabel(name, { exact: true })
const choice = (name: string) => at.page.getByRole('combobox', { name, exact: true })
const stored = async (path: string) => (await at.served.app.admin('GET', path)).body
const eventTypes = async () => (await at.served.app.events()).map(({ type }) => type)
/**
 * Runs `act` and waits for the answer to its request. A message alone proves nothing, because it may belong
 * to an earlier change.
 */
const change = async (method: string, act: () => Promise<void>) => {
  const answered = at.page.waitForResponse(answer => answer.request().method() === method)
  await act()
  return (await answered).status()
}

testInChromium(
  'CON-40 an invitation is made with roles and groups, its link shown once, made anew and withdrawn',
  async () => {
    await create(at.served.app, '/groups', { name: 'Warehouse', roles: ['user'] })
    await enterConsole(at.page, at.served.url, '/console/users')
    await at.page.getByRole('link', { name: 'Invitations' }).click()
    await at.page.getByText('No invitations yet').waitFor()
    await at.button('Invite a person').click()
    expect(await choice('How they get it').inputValue()).toBe('link')
    await label('Email').fill('ida@example.com')
    await label('Roles').selectOption('admin')
    await at.button('Add · admin').click()
    await label('Groups').selectOption('Warehouse')
    await at.button('Add · Warehouse').click()
    await choice('Valid for').selectOption('1')
    await at.button('Make the link').click()
    const link = await dialog('The link').locator('code').innerText()
    expect((await at.served.app.call(link)).status).toBe(200)
    const [made] = (await stored('/invitations')).data
    expect(made).toMatchObject({ email: 'ida@example.com', roles: ['admin', 'user'], status: 'pending' })
    expect(made.groups.length).toBe(1)
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(86_400_000)
    await at.button('Close').click()
    expect(await at.page.getByText(link).count()).toBe(0)

    await at.page.getByRole('link', { name: /ida@example.com/ }).click()
    await at.heading(/ida@example.com/)
    await at.page.getByText('Nobody has accepted yet').waitFor()
    await at.button('Make a new link').click()
    const second = await dialog('The link').locator('code').innerText()
    expect(second).not.toBe(link)
    await at.button('Close').click()
    await at.button('Withdraw').click()
    expect(
      await change('DELETE', () =>
        at.page.getByRole('dialog').getByRole('button', { name: 'Withdraw' }).click(),
      ),
    ).toBe(204)
    await at.heading(/Withdrawn/)
    expect((await stored('/invitations')).data[0].status).toBe('withdrawn')
  },
  120_000,
)

testInChromium(
  'CON-40 a link for several people gives only the role user, in the organization that is named',
  async () => {
    const { id } = await addOrganization(at.served.app, 'northwind')
    await enterConsole(at.page, at.served.url, '/console/invitations')
    await at.button('Invite a person').click()
    await choice('How they get it').selectOption('link')
    await label('People who may use it').fill('20')
    expect(await label('Email').count()).toBe(0)
    const organization = at.page.getByRole('dialog').getByLabel('Organization', { exact: true })
    await organization.fill('nowhere')
    await at.button('Make the link').click()
    await at.page.getByText('There is no such organization.').waitFor()
    await organization.fill('northwind')
    await at.page.locator('details summary').click()
    await at.page.locator('dialog pre').getByText(id).waitFor()
    await at.button('Make the link').click()
    await dialog('The link').waitFor()
    expect((await stored('/invitations')).data[0]).toMatchObject({
      organization_id: id,
      max_uses: 20,
      email: null,
      roles: ['user'],
      groups: [],
    })
  },
  120_000,
)

testInChromium(
  'CON-41 people who registered are approved and refused, and the policy is set for the organization',
  async () => {
    const [one, other] = [
      await addWaiting(at.served.app, DEFAULT_ORGANIZATION),
      await addWaiting(at.served.app, DEFAULT_ORGANIZATION),
    ]
    await at.served.app.events()
    await enterConsole(at.page, at.served.url, '/console')
    await at.page.getByRole('link', { name: /2 people wait for approval/ }).click()
    await at.page
      .getByRole('button', { name: /^Approve/ })
      .nth(1)
      .waitFor()
    expect(
      await change('POST', () =>
        at.page
          .getByRole('button', { name: /^Approve/ })
          .first()
          .click(),
      ),
    ).toBe(200)
    await at.page
      .getByRole('button', { name: /^Approve/ })
      .nth(1)
      .waitFor({ state: 'detached' })
    await at.page.getByRole('button', { name: /^Refuse/ }).click()
    expect(
      await change('DELETE', () =>
        at.page.getByRole('dialog').getByRole('button', { name: 'Refuse' }).click(),
      ),
    ).toBe(204)
    await at.page.getByText('Nobody is waiting').waitFor()
    const left = await Promise.all([one, other].map(({ id }) => at.served.app.admin('GET', `/users/${id}`)))
    expect(left.map(({ status }) => status).sort()).toEqual([200, 404])
    expect(left.find(({ status }) => status === 200)?.body.enabled).toBe(true)
    const changes = (await eventTypes()).filter(type => /^user\.(approved|deleted|enabled)/.test(type))
    expect(changes.sort()).toEqual(['user.approved', 'user.deleted', 'user.enabled'])

    await at.page.getByRole('link', { name: 'Who may register' }).click()
    await choice('Self-registration').selectOption('domains')
    await at.button('Save changes').click()
    await at.page.locator('.field-error, .notice.bad').first().waitFor()
    await label('Allowed email domains').fill('example.com\nexample.org')
    await choice('Self-registration').selectOption('off')
    expect(await change('PUT', () => at.button('Save changes').click())).toBe(200)
    expect((await stored('/organizations/default')).settings.allowed_domains).toEqual([
      'example.com',
      'example.org',
    ])
  },
  120_000,
)

testInChromium(
  'CON-42 a dynamic application is blocked and unblocked, its sessions are ended, and a registration token is shown once',
  async () => {
    await addDynamicClient(at.served.app, DEFAULT_ORGANIZATION)
    await enterConsole(at.page, at.served.url, '/console/clients')
    await at.page.getByRole('link', { name: 'Dynamic applications', exact: true }).click()
    await at.page.getByRole('button', { name: /Agent/ }).click()
    await at.page.getByText('https://agent.example/').waitFor()
    const [client] = (await stored('/dynamic-clients')).data
    const blocked = async () => (await stored('/organizations/default')).settings.blocked_clients
    expect(await change('PUT', () => at.button('Block').click())).toBe(200)
    await at.button('Unblock').waitFor()
    expect(await blocked()).toEqual([client.client_id])
    expect(await change('PUT', () => at.button('Unblock').click())).toBe(200)
    await at.button('Block').waitFor()
    expect(await blocked()).toEqual([])
    await at.button('End its sessions').click()
    expect(
      await change('DELETE', () =>
        at.page.getByRole('dialog').getByRole('button', { name: 'End its sessions' }).click(),
      ),
    ).toBe(200)

    await at.button('Make a registration token').click()
    await label('Applications that may register with it').fill('0')
    const submit = at.page.getByRole('dialog').getByRole('button', { name: 'Make a registration token' })
    await submit.click()
    expect(await at.page.locator('[name=uses]:user-invalid').count()).toBe(1)
    await label('Applications that may register with it').fill('3')
    await submit.click()
    const token = await dialog('The registration token').locator('code').innerText()
    expect(token.length).toBe(43)
    expect((await at.served.app.events()).at(-1)).toMatchObject({
      type: 'initial_access_token.created',
      metadata: { uses: 3 },
    })
    await at.button('Close').click()
    expect(await at.page.getByText(token).count()).toBe(0)

    await at.page.getByRole('link', { name: 'Policies' }).click()
    await choice('Self-registration of applications').selectOption('initial_access_token')
    await choice('Metadata documents').selectOption('allowlist')
    await label('Allowed documents').fill('https://agent.example/client.json')
    expect(await change('PUT', () => at.button('Save changes').click())).toBe(200)
    expect((await stored('/organizations/default')).settings).toMatchObject({
      client_registration: 'initial_access_token',
      client_metadata_documents: 'allowlist',
      allowed_metadata_documents: ['https://agent.example/client.json'],
    })
  },
  120_000,
)

testInChromium(
  'CON-09 without the permissions no invitation, approval or block is offered',
  async () => {
    await create(at.served.app, '/roles', { name: 'reader', permissions: ['users:read', 'clients:read'] })
    await addUser(at.served.app, 'rita', { roles: ['user', 'reader'] })
    await addWaiting(at.served.app, DEFAULT_ORGANIZATION)
    await addDynamicClient(at.served.app, DEFAULT_ORGANIZATION)
    await create(at.served.app, '/invitations', { delivery: 'link' })
    await enterConsole(at.page, at.served.url, '/console/invitations', 'rita')
    await at.page.getByRole('link', { name: /A link for one person/ }).click()
    await at.page.getByText('Nobody has accepted yet').waitFor()
    expect(await at.page.getByText('Send again or withdraw').count()).toBe(0)
    const forbidden = /^(Invite|Make|Withdraw|Approve|Refuse|Block|End)/
    expect(await at.button(forbidden).count()).toBe(0)
    await at.page.goto(`${at.served.url}/console/registrations`)
    await at.page.locator('.avatar').nth(1).waitFor()
    expect(await at.button(forbidden).count()).toBe(0)
    await at.page.goto(`${at.served.url}/console/dynamic-clients`)
    await at.page.getByRole('button', { name: /Agent/ }).click()
    expect(await at.button(forbidden).count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-55 the sessions of a user are shown page by page',
  async () => {
    const { app, url } = at.served
    const client = await addClient(app, 'board')
    const user = await addUser(app, 'ida')
    for (let n = 0; n < 21; n++) await grantTokens(app, client, user)
    await enterConsole(at.page, url, `/console/users/${user.id}`)
    const ends = at.button(/^End · board/)
    await at.page.getByText('20 of 21').waitFor()
    expect(await ends.count()).toBe(20)
    await at.button('Show more').click()
    await ends.nth(20).click()
    expect(await change('DELETE', () => at.button('End').click())).toBe(204)
    await ends.nth(20).waitFor({ state: 'detached' })
    await at.page.waitForFunction(() => !document.body.innerText.includes('of 21'))
    expect((await stored(`/sessions?user_id=${user.id}`)).pagination.total).toBe(20)
  },
  120_000,
)

testInChromium(
  'CON-40 the invitation of a user names the user, and gives no roles of its own',
  async () => {
    const person = { username: 'ida', email: 'ida@example.com', first_name: 'Ida', last_name: '' }
    await create(at.served.app, '/users', { ...person, roles: ['admin'], invite: 'link' })
    const [{ id, roles }] = (await stored('/invitations')).data
    expect(roles).toEqual([])
    await enterConsole(at.page, at.served.url, `/console/invitations/${id}`)
    const facts = at.page.locator('.facts')
    await facts.getByRole('link', { name: 'ida', exact: true }).waitFor()
    expect(await facts.locator('div', { hasText: 'Roles' }).locator('dd').innerText()).toBe('–')
  },
  120_000,
)

testInChromium(
  'CON-09 a person who may not change groups can invite nobody into a group',
  async () => {
    await create(at.served.app, '/groups', { name: 'Warehouse', roles: ['user'] })
    const permissions = ['users:read', 'users:create', 'roles:read', 'groups:read']
    await create(at.served.app, '/roles', { name: 'inviter', permissions })
    await addUser(at.served.app, 'rita', { roles: ['user', 'inviter'] })
    await enterConsole(at.page, at.served.url, '/console/invitations', 'rita')
    await at.button('Invite a person').click()
    await label('Roles').locator('option', { hasText: 'inviter' }).waitFor({ state: 'attached' })
    expect(await label('Groups').isDisabled()).toBe(true)
    await at.button('Make the link').click()
    await dialog('The link').waitFor()
    expect((await stored('/invitations')).data[0]).toMatchObject({ roles: ['user'], groups: [] })
  },
  120_000,
)
