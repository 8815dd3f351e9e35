/** Tests the console's screens for APIs, claims and attributes, in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { hostActor } from '#src/audit/record.ts'
import { setPicture } from '#src/directory/users/picture.ts'
import { newId } from '#src/lib/ids.ts'
import type { Picture } from '#src/pages/picture.ts'
import { applySeed } from '#src/seed/apply.ts'
import { parseSeed } from '#src/seed/read.ts'
import { START } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'
import { png } from '#test/support/photos.ts'

let served: Awaited<ReturnType<typeof serveConsole>>
let opened: Opened
let page: Page

beforeEach(async () => {
  served = await serveConsole()
  opened = await openPage({ viewport: { width: 1280, height: 900 } })
  page = opened.page
})
afterEach(async () => {
  await opened.close()
  await served.stop()
})
afterAll(closeChromium)

const button = (name: string) => page.getByRole('button', { name, exact: true })
/** Submits the form of the dialog. Dialogs differ in the text of this button. */
const submit = () => page.locator('dialog [type=submit]').click()
const tab = (name: string) => page.getByRole('tab', { name }).click()
const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
const open = async (name: string) => page.getByRole('navigation').getByRole('link', { name }).click()
const label = (name: string) => page.getByLabel(name, { exact: true })
const save = async () => {
  const answered = page.waitForResponse(answer => answer.request().method() === 'PUT' && answer.ok())
  await button('Save changes').click()
  await answered
  await button('Save changes').waitFor({ state: 'detached' })
}
const stored = async (path: string) => (await served.app.admin('GET', path)).body

testInChromium(
  'CON-14 an API gets scopes with texts, a role and an application; refusals stand at their field',
  async () => {
    await enterConsole(page, served.url, '/console/apis')
    await page.getByText('No APIs yet').waitFor()
    await button('Add an API').click()
    await label('Name').fill('Orders')
    await label('Identifier').fill('orders')
    await submit()
    await page.getByText('An absolute URI such as https://api.example.com, without').waitFor()
    await label('Identifier').fill('https://orders.example.com/')
    await submit()
    await heading('Orders')

    await tab('Scopes')
    await button('Add a scope').click()
    await label('Scope').fill('users:read')
    await button('Save changes').click()
    await page.getByText('A scope must not have the name of a permission').waitFor()
    await label('Scope').fill('orders.read')
    await page.getByRole('combobox', { name: 'Who gets it' }).selectOption('admin')
    await button('Add a language').click()
    await label('Language').fill('en')
    await label('Text').fill('Read your orders')
    await tab('Applications')
    await page.getByRole('combobox', { name: 'Add an application' }).selectOption('shop')
    await button('Add · Northwind shop').click()
    await tab('Settings')
    await label('Lifetime of tokens').fill('5m')
    await save()
    const [api] = (await stored('/apis')).data
    expect(api).toMatchObject({
      identifier: 'https://orders.example.com/',
      access_token_ttl: 300,
      scopes: [{ name: 'orders.read', texts: { en: 'Read your orders' }, role: 'admin' }],
      clients: [{ client_id: 'shop', scopes: ['orders.read'] }],
    })

    await tab('Applications')
    await page.getByRole('button', { name: 'Remove Northwind shop' }).click()
    await button('Cancel').click()
    await page.getByRole('checkbox', { name: 'orders.read' }).waitFor()
    await button('Delete').click()
    await page.getByRole('textbox', { name: /Type Orders/ }).fill('Orders')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No APIs yet').waitFor()
    expect((await stored('/apis')).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-14 an application gets claims and is closed to people without a role',
  async () => {
    await enterConsole(page, served.url, '/console/clients/shop')
    await heading('Northwind shop')
    await tab('Who may sign in')
    await page.getByText('Nothing is chosen, so everyone').waitFor()
    await tab('Tokens')
    await button('Add a claim').click()
    await label('Claim').fill('tenant')
    await label('Value from').fill('user.tenant')
    await button('Save changes').click()
    await page.getByText('A path is user.attributes.NAME').waitFor()
    await label('Value from').fill('user.attributes.tenant')
    await label('Only with scope').fill('profile')
    await tab('Who may sign in')
    await label('Roles').selectOption('admin')
    await button('Add · admin').click()
    await save()
    expect(await stored('/clients/shop')).toMatchObject({
      claims: { tenant: { from: 'user.attributes.tenant', scope: 'profile' } },
      allowed_roles: ['admin'],
      allowed_groups: [],
    })
    await page.getByRole('button', { name: 'Remove admin' }).click()
    await tab('Tokens')
    await page.getByRole('button', { name: 'Remove tenant' }).click()
    await tab('What people see')
    await label('Home page').fill('https://shop.northwind.example/')
    const buffer = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>')
    await label('Logo').setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer })
    await save()
    expect(await stored('/clients/shop')).toMatchObject({
      claims: {},
      allowed_roles: [],
      client_uri: 'https://shop.northwind.example/',
      logo: expect.stringMatching(/^\/assets\/organizations\/.*\.svg$/),
    })
    await open('Applications')
    await heading('Applications')
  },
  120_000,
)

testInChromium(
  'CON-15 attributes are defined for an organization, and the attributes of a user are changed by their type',
  async () => {
    await enterConsole(page, served.url, '/console/organizations/default#attributes')
    await button('Define an attribute').click()
    const first = page.getByRole('group', { name: 'new attribute' })
    await first.getByLabel('Name', { exact: true }).fill('level')
    await page.getByRole('combobox', { name: 'Type' }).selectOption('integer')
    await page.getByLabel('Asked for at the next sign-in').check()
    await button('Save changes').click()
    await page.getByText('Users are asked for a required attribute, so set `editable` to `user`.').waitFor()
    await page.getByLabel('Asked for at the next sign-in').uncheck()
    await button('Define an attribute').click()
    await first.getByLabel('Name', { exact: true }).fill('teams')
    await page.getByRole('combobox', { name: 'Type' }).nth(1).selectOption('array')
    await save()
    expect((await stored('/organizations/default')).settings.user_attributes).toMatchObject([
      { name: 'level', type: 'integer' },
      { name: 'teams', type: 'array' },
    ])

    const { id } = (await stored('/users?search=grace')).data[0]
    await served.app.admin('PUT', `/users/${id}`, { attributes: { deep: { kept: true }, note: 'old' } })
    await page.goto(`${served.url}/console/users/${id}`)
    await label('level').fill('three')
    await label('level').blur()
    await page.getByText('This is not a number.').waitFor()
    await label('level').fill('3')
    await label('teams').fill('Blue\nRed')
    await label('Value').nth(1).fill('new')
    await save()
    const attributes = { deep: { kept: true }, level: 3, note: 'new', teams: ['Blue', 'Red'] }
    expect((await stored(`/users/${id}`)).attributes).toEqual(attributes)
  },
  120_000,
)

testInChromium(
  'CON-16 a user shows groups with their roles and the applications used; a role shows who has it',
  async () => {
    await create(served.app, '/roles', { name: 'helper', permissions: ['groups:read'] })
    const group = await create(served.app, '/groups', { name: 'Staff', roles: ['helper'] })
    const { id } = (await stored('/users?search=grace')).data[0]
    await served.app.admin('PUT', `/groups/${group.id}/members/${id}`)
    await enterConsole(page, served.url, `/console/users/${id}`)
    await page.getByText('Through Staff').waitFor()
    await page.getByRole('link', { name: /Staff.*Gives helper/s }).waitFor()
    await page.getByText('None with a consent or an open session').waitFor()
    await served.app.context.store.write(tx =>
      tx.insert(tx.tables.consents).values({
        user_id: id,
        client_id: 'shop',
        organization_id: 'org_default',
        scopes: ['openid', `${newId('api', START)}/orders.read`, 'api_v1/read'],
        created_at: START,
        updated_at: START,
      }),
    )
    await page.reload()
    await page.getByText('openid, orders.read, api_v1/read').waitFor()

    await open('Roles')
    await page.getByRole('combobox', { name: 'With the permission' }).selectOption('groups:read')
    await page.getByRole('link', { name: /^user/ }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: /helper/ }).click()
    await page.getByText('Nobody has it directly').waitFor()
    await page.getByRole('link', { name: /Staff.*1 member/s }).waitFor()
    await page.goto(`${served.url}/console/roles/role_admin`)
    await page.getByRole('link', { name: /ada@example.com/ }).click()
    await page.getByText('No consent needed so far').waitFor()
    // The console and dynamic applications have no screen of their own.
    await page.locator('li.row', { hasText: /Gatehouse console.*session/s }).waitFor()
    expect(await page.getByRole('link', { name: /Gatehouse console/ }).count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-17 each object is shown as YAML that changes nothing when it is applied, without its secret',
  async () => {
    const { id } = (await stored('/users?search=grace')).data[0]
    const attributes = { 'a key': 'yes', list: ['1', 'two: #'], deep: { n: 1, on: true, none: {} } }
    await served.app.admin('PUT', `/users/${id}`, { attributes, first_name: 'null', last_name: '- "x"' })
    const face = { type: 'png', bytes: png() as Picture['bytes'] } as const
    await setPicture(served.app.context, id, face, hostActor)
    const acme = await create(served.app, '/organizations', { name: 'Acme', slug: 'acme' })
    const role = await create(served.app, '/roles', {
      name: 'helper',
      permissions: ['users:read'],
      organization_id: acme.id,
    })
    const group = await create(served.app, '/groups', { name: 'Staff', roles: ['user'] })
    await served.app.admin('PUT', `/groups/${group.id}/members/${id}`)
    await create(served.app, '/roles', { name: 'auditor', permissions: [] })
    const scopes = [{ name: 'orders.read', texts: { en: 'Read: all', 'pt-BR': 'Ler' }, role: 'auditor' }]
    const clients = [{ client_id: 'shop', scopes: ['orders.read'] }]
    const api = await create(served.app, '/apis', {
      identifier: 'urn:orders',
      name: 'Orders',
      scopes,
      clients,
    })
    const user_attributes = [{ name: 'level', type: 'integer', visible: 'user' }]
    await served.app.admin('PUT', '/organizations/acme', { settings: { user_attributes } })
    await served.app.admin('PUT', '/clients/shop', { claims: { level: 'user.attributes.level' } })
    const needed: Record<string, string> = {
      roles: 'organizations acme',
      apis: 'roles auditor; clients shop',
    }
    await enterConsole(page, served.url)
    for (const path of [
      `users/${id}`,
      'organizations/acme',
      `roles/${role.id}`,
      `groups/${group.id}`,
      `apis/${api.id}`,
      'clients/shop',
    ]) {
      await page.goto(`${served.url}/console/${path}`)
      await page.getByText('As YAML').click()
      const shown = await page.locator('details[open] pre').innerText()
      const isClient = path === 'clients/shop'
      expect([path, /^# .*/.exec(shown)?.[0].split(': ')[1]]).toEqual([
        path,
        needed[path.split('/')[0] ?? ''],
      ])
      expect([path, shown.includes('{ env: SHOP_SECRET }') || shown.includes('env: SHOP_SECRET')]).toEqual([
        path,
        isClient,
      ])
      const text = shown.replace(/\n {4}client_secret:\n.*/, '')
      const changes = await applySeed(served.app.context, parseSeed(text, 'seed.yaml'), { dry_run: true })
      expect([path, changes]).toEqual([path, []])
    }
    const hidden = { name: 'hidden', type: 'string', visible: 'nobody', editable: 'nobody' }
    await served.app.admin('PUT', '/organizations/default', { settings: { user_attributes: [hidden] } })
    await page.goto(`${served.url}/console/users/${id}`)
    await page.getByText('As YAML').click()
    expect(await page.locator('details[open] pre').innerText()).not.toContain('attributes')

    await page.goto(`${served.url}/console/clients/shop`)
    await label('Name').fill('The shop')
    await tab('Tokens')
    await page.getByRole('checkbox', { name: 'Ask people for consent' }).check()
    await page.getByText('2 changes').click()
    expect(await page.locator('.difference del').allInnerTexts()).toEqual(['Northwind shop', 'false'])
    expect(await page.locator('.difference ins').allInnerTexts()).toEqual(['The shop', 'true'])
  },
  120_000,
)

testInChromium(
  'CON-18 signing keys are rotated after a question, and backups are listed',
  async () => {
    await enterConsole(page, served.url, '/console/settings')
    await page.getByText('No backups yet').waitFor()
    await button('Rotate now').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate now' }).click()
    await page.getByText('Next', { exact: true }).first().waitFor()
    expect((await stored('/keys')).data).toHaveLength(4)
    await page.getByRole('link', { name: 'API reference' }).click()
    await page.waitForURL(/\/api\/v1\/docs$/)
  },
  120_000,
)

testInChromium(
  'CON-19 users and events are exported as CSV that holds no formula',
  async () => {
    const { id } = (await stored('/users?search=grace')).data[0]
    await served.app.admin('PUT', `/users/${id}`, { first_name: '=1+1', last_name: '@a "b", c' })
    const alan = (await stored('/users?search=alan')).data[0]
    await served.app.admin('PUT', `/users/${alan.id}`, { first_name: '＝1+1', last_name: 'Turing' })
    await enterConsole(page, served.url, '/console/users')
    const exported = async () => {
      const begun = page.waitForEvent('download')
      await button('Export as CSV').click()
      return (await Bun.file(await (await begun).path()).text()).split('\r\n')
    }
    const users = await exported()
    expect(users).toHaveLength(1 + 4 + 1)
    expect(users[0]).toStartWith('id,username,email,email_verified,first_name,last_name,enabled,roles,')
    expect(users.find(row => row.startsWith(id))).toContain(
      `grace,grace@example.com,false,'=1+1,"'@a ""b"", c",true,user,org_default,`,
    )
    expect(users.find(row => row.startsWith(alan.id))).toContain(",'＝1+1,Turing,")
    await open('Audit log')
    await page.getByLabel('Event').selectOption('client.created')
    await page.waitForURL(/type=client.created/)
    const events = await exported()
    expect(events.filter(row => row.includes(',client.created,'))).toHaveLength(events.length - 2)
  },
  120_000,
)

testInChromium(
  'CON-20 a webhook is added, its secret shown once, changed and deleted',
  async () => {
    await enterConsole(page, served.url, '/console/webhooks')
    await button('Add a webhook').click()
    await label('Name').fill('Shop')
    await label('Address').fill('https://shop.example.com/events')
    await label('Events').fill('nothing.*')
    await submit()
    await page.getByText('No event type matches this pattern.').waitFor()
    await label('Events').fill('user.*\nsession.revoked')
    await submit()
    const secret = await page.getByRole('dialog').locator('code').innerText()
    expect(secret).toStartWith('whsec_')
    await button('Close').click()
    await heading('Shop')
    await page.getByText('No deliveries yet').waitFor()
    await page.getByRole('checkbox', { name: /^On/ }).uncheck()
    await save()
    const [webhook] = (await stored('/webhooks')).data
    expect(webhook).toMatchObject({ enabled: false, events: ['user.*', 'session.revoked'] })
    await page.getByText('As YAML').click()
    const text = await page.locator('details[open] pre').innerText()
    expect(text).not.toContain(secret)
    const changes = await applySeed(served.app.context, parseSeed(text, 'seed.yaml'), { dry_run: true })
    expect(changes).toEqual([])
    await button('Make a new secret').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make a new secret' }).click()
    await page.getByText(/^whsec_/).waitFor()
    await button('Close').click()
    await button('Delete').click()
    await page.getByRole('textbox', { name: /Type Shop/ }).fill('Shop')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No webhooks yet').waitFor()
    expect((await stored('/webhooks')).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'the list and the page of an organization show its name for administrators where it differs',
  async () => {
    await create(served.app, '/organizations', { name: 'Acme North', slug: 'acme', display_name: 'Acme' })
    await enterConsole(page, served.url, '/console/organizations')
    const row = page.getByRole('link', { name: /Acme/ })
    await row.getByText('Acme North · acme').waitFor()
    expect(await page.getByText('Gatehouse ·').count()).toBe(0)
    await row.click()
    await page.locator('.lead', { hasText: 'Acme North · org_' }).waitFor()
  },
  120_000,
)
