/** Tests in a browser how the console creates a user with roles and groups, also without a mail server. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addUser } from '#test/support/people.ts'

const at = inConsole()
const { stored } = at
const label = (name: string) => at.page.getByLabel(name, { exact: true })
const check = (name: string | RegExp) => at.page.getByRole('checkbox', { name })

const fillIn = async (username: string) => {
  await label('Username').fill(username)
  await label('Email').fill(`${username}@example.com`)
  await label('First name').fill(username)
  await label('Last name').fill('Example')
}
const userCalled = async (name: string) => (await stored(`/users?search=${name}`)).data[0]
const membersOf = async (id: string) =>
  (await stored(`/groups/${id}/members`)).data.map(({ username }: { username: string }) => username)

testInChromium(
  'CON-50 a new user gets the chosen roles and groups; a group that refuses is named and tried again',
  async () => {
    const { app, url } = at.served
    await create(app, '/roles', { name: 'support', description: 'Helps people', permissions: ['users:read'] })
    const warehouse = await create(app, '/groups', { name: 'Warehouse', roles: ['user'] })
    const office = await create(app, '/groups', { name: 'Office', roles: [] })
    await enterConsole(at.page, url, '/console/users/new')
    await fillIn('katherine')
    expect(await check(/^user/).isChecked()).toBe(true)
    await check(/^support Helps people/).check()
    await check(/^Warehouse/).check()
    await check(/^Office/).check()
    expect(await axeFindings(at.page)).toEqual([])
    await at.button('Add the user').click()
    await at.heading('katherine Example')
    expect((await userCalled('katherine')).roles).toEqual(['support', 'user'])
    expect(await membersOf(warehouse.id)).toEqual(['katherine'])
    expect(await membersOf(office.id)).toEqual(['katherine'])

    await at.walk('users/new')
    await fillIn('dorothy')
    await check(/^Warehouse/).check()
    await check(/^Office/).check()
    await app.admin('DELETE', `/groups/${office.id}`)
    await at.button('Add the user').click()
    await at.heading('dorothy was added')
    await at.page.getByText('Office', { exact: true }).waitFor()
    await at.page.getByText('The group does not exist').waitFor()
    expect(await at.page.getByText('Warehouse').count()).toBe(0)
    expect(await membersOf(warehouse.id)).toEqual(['dorothy', 'katherine'])
    expect(await axeFindings(at.page)).toEqual([])
    const again = at.page.waitForResponse(answer => answer.url().includes('/members/'))
    await at.button('Try again').click()
    expect((await again).status()).toBe(404)
    await at.page.getByRole('link', { name: 'Open the user' }).click()
    await at.heading('dorothy Example')
  },
  120_000,
)

testInChromium(
  'CON-50 only roles and groups that the caller may grant are offered',
  async () => {
    const { app, url } = at.served
    const own = ['users:read', 'users:create', 'roles:read', 'groups:read', 'groups:update', 'profile:read']
    await create(app, '/roles', { name: 'helper', permissions: own })
    await create(app, '/roles', { name: 'auditor', permissions: ['events:read'] })
    await create(app, '/groups', { name: 'Helpers', roles: ['helper'] })
    await create(app, '/groups', { name: 'Auditors', roles: ['helper', 'auditor'] })
    await addUser(app, 'mary', { roles: ['helper'] })
    await enterConsole(at.page, url, '/console/users/new', 'mary')
    await check(/^Helpers/).waitFor()
    expect(
      await at.page
        .locator('.checks .check > span')
        .evaluateAll(all => all.map(each => each.firstChild?.textContent)),
    ).toEqual(['helper', 'user', 'Helpers'])
  },
  120_000,
)

testInChromium(
  'CON-52 without a mail server a reset is not offered, and a sign-in link is',
  async () => {
    const { id } = await userCalled('grace')
    await enterConsole(at.page, at.served.url, `/console/users/${id}`)
    await at.page.getByText('Mail is not set up').waitFor()
    expect(await at.button('Email a password reset').isDisabled()).toBe(true)
    await at.page.getByText('Applications get this as email_verified').waitFor()
    await at.button('Make a sign-in link').click()
    await at.page.getByRole('dialog', { name: 'Sign-in link' }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-05 people are asked for consent to an application of others, and a command has its secret',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/clients/+new')
    await label('Name').fill('Partner')
    await at.page.getByText('People sign in without being asked for consent.').waitFor()
    await at.page.getByRole('radio', { name: /Someone else’s/ }).check()
    await at.button('Connect').click()
    await at.heading('Partner is connected')
    expect(await stored('/clients/partner')).toMatchObject({ consent_required: true })

    await at.walk('clients/+new')
    const isAsked = () => at.page.getByText('another program on the device could use the address').count()
    await label('Name').fill('Field tool')
    expect(await isAsked()).toBe(0)
    await at.page.getByRole('radio', { name: /^Mobile/ }).check()
    expect(await isAsked()).toBe(1)
    await label('Redirect URIs').fill('https://app.example.com/callback')
    expect(await isAsked()).toBe(0)
    await label('Redirect URIs').fill('https://app.example.com/callback\ncom.example.app:/callback')
    expect(await isAsked()).toBe(1)
    await at.button('Connect').click()
    await at.heading('Field tool is connected')
    expect(await stored('/clients/field-tool')).toMatchObject({ kind: 'native', consent_required: true })

    await at.walk('clients/+new')
    await at.page.getByRole('radio', { name: /^Service/ }).check()
    expect(await at.page.getByRole('radio', { name: /Someone else’s/ }).count()).toBe(0)
    await label('Name').fill('Robot')
    await at.button('Connect').click()
    await at.heading('Robot is connected')
    const secret = await at.page.locator('dd code').nth(3).innerText()
    expect(await at.page.locator('pre').first().innerText()).toStartWith(
      `export CLIENT_SECRET=${secret}\ncurl -s `,
    )
    await addClient(at.served.app, 'job', {
      grant_types: ['client_credentials'],
      redirect_uris: [],
      kind: 'service',
    })
    await at.walk('clients/job')
    await at.page.getByText('export CLIENT_SECRET=YOUR_SECRET').waitFor()
    await at.button('Make a new secret').click()
    const dialog = at.page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Make a new secret' }).click()
    await dialog.getByText('Put it into the configuration of the application.').waitFor()
    expect(await at.page.evaluate(() => document.activeElement?.textContent)).toBe('Copy')
    const fresh = await dialog.locator('code').innerText()
    await at.button('Close').click()
    await at.page.getByText(`export CLIENT_SECRET=${fresh}`).waitFor()
    await at.walk('clients')
    await at.walk('clients/job')
    await at.page.getByText('export CLIENT_SECRET=YOUR_SECRET').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-05 an application with the id “new” has its own screen',
  async () => {
    await addClient(at.served.app, 'new', { name: 'News' })
    await enterConsole(at.page, at.served.url, '/console/clients')
    await at.page.getByRole('link', { name: /News/ }).click()
    await at.heading('News')
    await at.walk('clients')
    await at.page.getByRole('link', { name: 'Connect an application' }).click()
    await at.heading('Connect an application')
  },
  120_000,
)

testInChromium(
  'CON-05 the proposed id of an application has the letters of the name without their marks',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/clients/+new')
    await label('Name').fill('Café Müller – Łódź')
    expect(await at.page.locator('[name=client_id]').inputValue()).toBe('cafe-muller-odz')
  },
  120_000,
)

testInChromium(
  'CON-17 a command that makes a user takes the password from a variable of the shell',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/users/new')
    await fillIn('katherine')
    await label('Last name').fill("O'Brien $PASSWORD")
    await at.page.getByText('As curl').click()
    const command = await at.page.locator('details[open] pre').innerText()
    const { stdout } = Bun.spawnSync(['sh', '-c', `curl() { printf '%s\n' "$@"; }\n${command}`], {
      env: { TOKEN: 'a-token', PASSWORD: 'Correct-horse-7' },
    })
    const sent = stdout.toString().split('\n')
    expect(sent).toContain('authorization: Bearer a-token')
    expect(JSON.parse(sent.find(part => part.startsWith('{')) ?? '')).toEqual({
      username: 'katherine',
      email: 'katherine@example.com',
      first_name: 'katherine',
      last_name: "O'Brien $PASSWORD",
      password: 'Correct-horse-7',
      email_verified: false,
      roles: ['user'],
    })
  },
  120_000,
)
