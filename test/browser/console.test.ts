/** Tests the main tasks of the console in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { proposed } from '#src/directory/clients/kinds.ts'
import { FRESH } from '#src/protocol/oauth/next-step.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, saveChanges, serveConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'

type Served = Awaited<ReturnType<typeof serveConsole>>
let served: Served
let opened: Opened
let page: Page
/** Violations of the page's Content-Security-Policy, and errors of its script. */
let faults: string[]

beforeEach(async () => {
  served = await serveConsole()
  opened = await openPage({ viewport: { width: 1280, height: 900 } })
  page = opened.page
  faults = []
  page.on('pageerror', error => faults.push(error.message))
  page.on('console', message => {
    if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) faults.push(message.text())
  })
})
afterEach(async () => {
  expect(faults).toEqual([])
  await opened.close()
  await served.stop()
})
afterAll(closeChromium)

/** Submits the form of the dialog. Dialogs differ in the text of this button. */
const submit = () => page.locator('dialog [type=submit]').click()
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
const save = () => saveChanges(page)
/** Waits until the page has copied the text to the clipboard, a moment after the click. */
const copied = async (text: string) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === text)
}
const open = async (name: string) => page.getByRole('navigation').getByRole('link', { name }).click()

testInChromium(
  'CON-05 an application is connected, its secret shown once and a program filled in; the log has the event',
  async () => {
    await enterConsole(page, served.url)
    await heading('Overview')
    await open('Applications')
    await page.getByRole('link', { name: 'Connect an application' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Pet clinic')
    expect(await page.getByLabel('Client ID').inputValue()).toBe('pet-clinic')
    await button('Connect').click()
    await heading('Pet clinic is connected')
    const { body } = await served.app.admin('GET', '/clients/pet-clinic')
    expect(body).toMatchObject({
      ...proposed('web', ['http://localhost:3000/callback']),
      consent_required: false,
    })
    const values = await page.locator('dd code').allInnerTexts()
    expect(values.slice(0, 3)).toEqual([
      served.url,
      `${served.url}/.well-known/openid-configuration`,
      'pet-clinic',
    ])
    const secret = values[3] ?? ''
    await served.app
      .tokenOf('pet-clinic', secret)
      .catch(error => expect(String(error)).toContain('unauthorized_client'))
    expect(await page.locator('pre').first().innerText()).toContain("'pet-clinic'")
    const server = await page.locator('pre').nth(1).innerText()
    expect(server).toContain("new URL('http://localhost:3000')")
    expect(server).toContain("url.pathname === '/callback'")
    const command = `CLIENT_SECRET=${secret} node app.mjs`
    await page.locator('.code', { hasText: command }).getByRole('button', { name: 'Copy' }).click()
    await copied(command)
    await page
      .locator('.value', { hasText: 'npm install --prefix . openid-client' })
      .getByRole('button', { name: 'Copy' })
      .click()
    await copied('npm install --prefix . openid-client')
    await page.getByText('app.mjs below uses login.mjs').waitFor()
    await page.getByRole('link', { name: 'gatehouse guide connect' }).click()
    await heading('Connect an application')

    await open('Audit log')
    await page.getByLabel('Event').selectOption('client.created')
    // Waits until the filter has taken effect, because the unfiltered list also contains the row.
    await page.waitForURL(/type=client\.created/)
    await page.getByRole('button', { name: /Application registered.*Pet clinic/ }).click()
    await page.getByText('gatehouse-console').or(page.getByText('pet-clinic')).first().waitFor()
    await page.getByLabel('Event').selectOption('user.login')
    await page.getByRole('button', { name: /Signed in.*gatehouse-console · ada@example/ }).waitFor()
    await open('Applications')
    await page.getByRole('link', { name: /Pet clinic/ }).waitFor()
    expect(await page.getByText(secret).count()).toBe(0)
    await page.getByRole('link', { name: /Pet clinic/ }).click()
    await page.getByText('Put its secret in place of YOUR_SECRET.').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-06 users are searched, changed and disabled together; hostile names stay text',
  async () => {
    const hostile = '<img src=x onerror=alert(1)>'
    await addUser(served.app, 'mallory', { first_name: hostile })
    await enterConsole(page, served.url, '/console/users')
    await page.getByLabel('Search').fill('mallory')
    await page.getByRole('link', { name: hostile }).click()
    await heading(hostile)
    await page.getByLabel('Last name').fill('Changed')
    await save()
    const { body } = await served.app.admin('GET', '/users?search=mallory')
    expect(body.data[0].last_name).toBe('Changed')

    await page.getByRole('link', { name: 'Users' }).first().click()
    await page.getByLabel('Select grace').check()
    await page.getByLabel('Select alan').check()
    const chosen = page.getByRole('row', { name: /alan/ })
    expect(await chosen.evaluate(row => getComputedStyle(row).display)).toBe('table-row')
    await button('Disable').click()
    await button('Disable 2 users').click()
    await page.getByRole('row', { name: /grace.*Disabled/s }).waitFor()
    const disabled = await served.app.admin('GET', '/users?enabled=false')
    expect(disabled.body.data.map(({ username }: { username: string }) => username).sort()).toEqual([
      'alan',
      'grace',
    ])
  },
  120_000,
)

testInChromium(
  'CON-07 a form keeps its input when another person has saved first, and asks whose values to keep',
  async () => {
    const { body } = await served.app.admin('GET', '/users?search=grace')
    const { id } = body.data[0]
    await enterConsole(page, served.url, `/console/users/${id}`)
    await page.getByLabel('First name').fill('Mine')
    await served.app.admin('PUT', `/users/${id}`, { last_name: 'Theirs' })
    await button('Save changes').click()
    const dialog = page.getByRole('dialog', { name: 'Someone else changed this meanwhile' })
    await dialog.getByText('Theirs', { exact: true }).waitFor()
    await button('Keep mine and save').click()
    await page.getByText('Saved').waitFor()
    const { body: user } = await served.app.admin('GET', `/users/${id}`)
    expect([user.first_name, user.last_name]).toEqual(['Mine', 'Theirs'])
  },
  120_000,
)

testInChromium(
  'CON-08 a deletion asks for the password again in a window of its own, and then continues',
  async () => {
    await enterConsole(page, served.url, '/console/clients/shop')
    await heading(/Northwind shop/)
    served.clock.skip((FRESH + 60) * 1000)
    await button('Delete').click()
    await page.getByRole('textbox', { name: /Type shop/ }).fill('shop')
    const [popup] = await Promise.all([
      page.waitForEvent('popup'),
      (async () => {
        await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
        await button('Continue').click()
      })(),
    ])
    await popup.locator('[name=password]').fill(PASSWORD)
    await popup.locator('[name=password]').press('Enter')
    await heading('Applications')
    expect((await served.app.admin('GET', '/clients/shop')).status).toBe(404)
  },
  120_000,
)

testInChromium(
  'CON-09 a person without permissions is told so, and can sign in as another; unknown ids do not exist',
  async () => {
    await enterConsole(page, served.url, '/console/users', 'grace')
    await page.getByText('No permission').waitFor()
    expect(await page.getByRole('navigation').getByRole('link').count()).toBe(0)
    await button('Sign in with another account').click()
    await page.locator('[name=username]').fill('ada')
    await page.locator('[name=password]').fill(PASSWORD)
    await page.locator('[name=password]').press('Enter')
    await heading('Overview')
    await opened.close()
    await create(served.app, '/roles', { name: 'helper', permissions: ['users:read'] })
    await addUser(served.app, 'helen', { roles: ['user', 'helper'] })
    opened = await openPage()
    page = opened.page
    await enterConsole(page, served.url, '/console/events', 'helen')
    await page.getByText('No permission').waitFor()
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual([
      'Overview',
      'Users',
      'Guide',
    ])
    await opened.close()
    opened = await openPage()
    page = opened.page
    await enterConsole(page, served.url, '/console/users/usr_unknown')
    await page.getByText('Not found').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-12 a role, an organization and sessions are managed',
  async () => {
    await enterConsole(page, served.url, '/console/roles')
    await button('Add a role').click()
    await page.getByLabel('Name').fill('helper')
    await submit()
    await heading('helper')
    await page.getByRole('group', { name: 'users' }).getByLabel('read').check()
    await save()
    const roles = await served.app.admin('GET', '/roles')
    expect(roles.body.data[0]).toMatchObject({ name: 'helper', permissions: ['users:read'] })

    await open('Organizations')
    await button('Add an organization').click()
    await page.getByLabel('Name', { exact: true }).fill('Acme Inc')
    await submit()
    await heading('Acme Inc')
    await page.getByRole('tab', { name: 'Sign-ins' }).click()
    await page.getByLabel('Longest sign-in').fill('soon')
    await button('Save changes').click()
    await page.getByText('A whole number followed by m, h, d or w').waitFor()
    await page.getByLabel('Longest sign-in').fill('12h')
    await page.getByLabel('Everyone needs a second factor').check()
    await save()
    const { body } = await served.app.admin('GET', '/organizations/acme-inc')
    expect(body.settings).toEqual({ session_ttl: '12h', mfa_required: true })

    await open('Sessions')
    await page.getByText('gatehouse-console').first().waitFor()
  },
  120_000,
)

testInChromium(
  'CON-13 an identity provider is added, switched on and off, and a server setting changed',
  async () => {
    await enterConsole(page, served.url, '/console/identity-providers')
    await button('Add a provider').click()
    await page.getByLabel('Client ID at the provider').fill('their-id')
    await page.getByLabel('Client secret at the provider').fill('their-secret')
    await page.getByText(`${served.url}/oauth/social/google/callback`).waitFor()
    await submit()
    await heading(/Google/)
    const provider = async () => (await served.app.admin('GET', '/identity-providers/google')).body
    expect(await provider()).toMatchObject({ enabled: false, preset: 'google', client_id: 'their-id' })
    await page.getByRole('checkbox', { name: /^On/ }).check()
    await save()
    expect(await provider()).toMatchObject({ enabled: true })

    await open('Settings')
    await page.getByLabel('Time between backups').fill('soon')
    await button('Save changes').click()
    await page.getByText('A duration from 1h to 365d').waitFor()
    await page.getByLabel('Time between backups').fill('1d')
    await save()
    expect((await served.app.admin('GET', '/settings')).body.backup_interval).toBe('1d')
  },
  120_000,
)

testInChromium(
  'CON-13 each well-known provider is added with an id and a secret alone',
  async () => {
    await enterConsole(page, served.url, '/console/identity-providers')
    const names = ['Google', 'Microsoft', 'GitLab', 'GitHub', 'Discord']
    for (const name of names) {
      await button('Add a provider').click()
      await page.getByRole('combobox', { name: 'Provider' }).selectOption(name)
      await page.getByLabel('Client ID at the provider').fill('their-id')
      await page.getByLabel('Client secret at the provider').fill('their-secret')
      await submit()
      await heading(new RegExp(name))
      await open('Identity providers')
    }
    const { body } = await served.app.admin('GET', '/identity-providers')
    expect(body.data.map((each: { name: string }) => each.name).sort()).toEqual(names.sort())
  },
  120_000,
)

for (const colorScheme of ['light', 'dark'] as const)
  testInChromium(
    `CON-10 each screen fits 320 pixels and has no findings of axe, ${colorScheme}`,
    async () => {
      const paths = await fillConsole(served.app)
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await enterConsole(page, served.url)
      for (const path of paths)
        for (const width of [320, 1280]) {
          await page.setViewportSize({ width, height: 800 })
          if (width === 320) await page.goto(`${served.url}/console${path}`)
          await page.locator('h1').waitFor()
          await page.locator('.loading').first().waitFor({ state: 'detached' })
          const over = await page.evaluate('Math.max(0, document.documentElement.scrollWidth - innerWidth)')
          expect([path, width, over, await axeFindings(page)]).toEqual([path, width, 0, []])
        }
    },
    300_000,
  )
