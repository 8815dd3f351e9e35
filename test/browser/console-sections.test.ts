/** Tests the sections of the console's long forms and the layout of their fields, in a browser. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { keyboardOf } from '#test/support/keyboard.ts'

const at = inConsole({}, { reducedMotion: 'reduce' })
const { button, stored } = at

const tab = (name: string) => at.page.getByRole('tab', { name, exact: true })
const label = (name: string) => at.page.getByLabel(name, { exact: true })
const isOpen = (name: string) => at.page.getByRole('tab', { name, exact: true, selected: true }).waitFor()
const focused = () => at.page.evaluate(() => document.activeElement?.id)

/** Long forms with the names of their sections. */
const forms = {
  'organizations/default': [
    'Names',
    'Sign-ins',
    'Who may join',
    'Terms to accept',
    'Dynamic applications',
    'Attributes of users',
  ],
  'clients/shop': ['Settings', 'Addresses', 'Tokens', 'Who may sign in', 'What people see'],
  'apis/': ['Settings', 'Scopes', 'Applications'],
}

testInChromium(
  'CON-53 an address opens its section, arrow keys go to the next section, and Tab goes into the open section',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/organizations/default#joining')
    await isOpen('Who may join')
    expect(await page.evaluate(() => scrollY)).toBe(0)
    const { reach } = keyboardOf(page)
    await reach(tab('Who may join'))
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.closest('[role=tabpanel]')?.id)).toBe(
      'panel-joining',
    )
    await page.keyboard.press('Shift+Tab')
    for (const name of ['Sign-ins', 'Names', 'Attributes of users']) {
      await page.keyboard.press('ArrowLeft')
      await isOpen(name)
    }
    await page.keyboard.press('ArrowRight')
    await isOpen('Names')
    expect(new URL(page.url()).hash).toBe('#names')
    expect(await page.getByRole('tabpanel').count()).toBe(1)
    await tab('Terms to accept').click()
    await tab('Sign-ins').click()
    await at.back()
    await isOpen('Terms to accept')
    await at.walk('organizations/default#nowhere')
    await isOpen('Names')
  },
  120_000,
)

testInChromium(
  'CON-53 in a right-to-left language the left arrow key goes to the next section',
  async () => {
    const other = await openPage({ viewport: { width: 390, height: 844 }, locale: 'ar' })
    await enterConsole(other.page, at.served.url, '/console/clients/shop')
    const tabs = other.page.getByRole('tab')
    await tabs.first().focus()
    await other.page.keyboard.press('ArrowLeft')
    expect(await tabs.nth(1).getAttribute('aria-selected')).toBe('true')
    await other.page.keyboard.press('ArrowRight')
    expect(await tabs.first().getAttribute('aria-selected')).toBe('true')
    expect(await axeFindings(other.page)).toEqual([])
    await other.close()
  },
  120_000,
)

testInChromium(
  'CON-53 entries of several sections stay and are saved together',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/organizations/default')
    await label('Name that people see').fill('Northwind')
    await tab('Terms to accept').click()
    await label('Version').fill('2026-01')
    await label('Text').fill('Be kind.')
    await tab('Attributes of users').click()
    await button('Define an attribute').click()
    await label('Name').fill('level')
    await tab('Names').click()
    expect(await label('Name that people see').inputValue()).toBe('Northwind')
    await at.page.getByText('3 changes').waitFor()
    await at.save()
    await isOpen('Names')
    expect(await stored('/organizations/default')).toMatchObject({
      display_name: 'Northwind',
      settings: { terms: { version: '2026-01', text: 'Be kind.' }, user_attributes: [{ name: 'level' }] },
    })
  },
  120_000,
)

testInChromium(
  'CON-53 the section of the first bad entry opens, and its field gets the focus',
  async () => {
    const { page, served } = at
    const role = await create(served.app, '/roles', { name: 'support', permissions: [] })
    await enterConsole(page, served.url, '/console/clients/shop')
    await label('Name').fill('')
    await tab('Tokens').click()
    await label('Lifetime of access tokens').fill('soon')
    await tab('What people see').click()
    await button('Save changes').click()
    await isOpen('Settings')
    expect(await focused()).toBe('name')
    await label('Name').fill('Shop')
    await label('Name').press('Enter')
    await isOpen('Tokens')
    expect(await focused()).toBe('access_token_ttl')
    await page.getByText('A number and s, m, h, d or w, such as 1m.').waitFor()
    await label('Lifetime of access tokens').fill('2h')
    await page.getByLabel('New ID token with each refresh').check()

    await button('Add a claim').click()
    await label('Claim').fill('tenant')
    await label('Value from').fill('user.tenant')
    await tab('Settings').click()
    await button('Save changes').click()
    await isOpen('Tokens')
    await page.getByText('A path is user.attributes.NAME').waitFor()
    expect(await focused()).toBe('claims.tenant')
    await label('Value from').fill('user.attributes.tenant')

    await tab('Who may sign in').click()
    await label('Roles').selectOption('support')
    await button('Add · support').click()
    await served.app.admin('DELETE', `/roles/${role.id}`)
    await tab('Settings').click()
    await button('Save changes').click()
    await isOpen('Who may sign in')
    expect(await focused()).toBe('allowed_roles')
    await page.getByRole('button', { name: 'Remove support' }).click()
    await at.save()
    expect(await stored('/clients/shop')).toMatchObject({
      name: 'Shop',
      access_token_ttl: 7200,
      id_token_on_refresh: true,
    })
  },
  120_000,
)

for (const colorScheme of ['light', 'dark'] as const)
  testInChromium(
    `CON-53 each section fits 320 pixels and has no findings of axe, ${colorScheme}`,
    async () => {
      const { page, served } = at
      const paths = await fillConsole(served.app)
      await page.emulateMedia({ colorScheme })
      await enterConsole(page, served.url)
      for (const [screen, names] of Object.entries(forms)) {
        await at.walk((paths.find(path => path.startsWith(`/${screen}`)) ?? '').slice(1))
        await tab(names[0] ?? '').waitFor()
        expect(await page.getByRole('tab').allInnerTexts()).toEqual(names)
        for (const name of names) {
          await tab(name).click()
          for (const width of [320, 1280]) {
            await page.setViewportSize({ width, height: 800 })
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
            expect([name, width, Math.max(0, over), await axeFindings(page)]).toEqual([name, width, 0, []])
          }
        }
      }
    },
    300_000,
  )

testInChromium(
  'CON-53 on a phone the tabs take one line, in which the open one is in view',
  async () => {
    const { page, served } = at
    await page.setViewportSize({ width: 390, height: 800 })
    await enterConsole(page, served.url, '/console/organizations/default#attributes')
    await isOpen('Attributes of users')
    const places = await page
      .getByRole('tab')
      .evaluateAll(all => all.map(each => each.getBoundingClientRect()))
    expect(new Set(places.map(({ top }) => top)).size).toBe(1)
    expect(places.at(-1)?.right).toBeLessThanOrEqual(390)
  },
  120_000,
)

testInChromium(
  'CON-53 the inputs of a pair stand in one line, however long their labels are',
  async () => {
    const { page, served } = at
    await page.setViewportSize({ width: 700, height: 900 })
    await enterConsole(page, served.url, '/console/organizations/default#dynamic')
    const first = page.getByRole('combobox', { name: 'Self-registration of applications' })
    await first.waitFor()
    await page.evaluate(() => {
      for (const text of document.querySelectorAll('[role=tabpanel]:not([hidden]) .pair label > span'))
        text.textContent = text.textContent?.repeat(text.closest('.choice:first-child') ? 3 : 1) ?? ''
    })
    const tops = await page
      .locator('.pair select:visible')
      .evaluateAll(all => all.map(each => each.getBoundingClientRect().top))
    expect(tops).toHaveLength(2)
    expect(tops[0]).toBe(tops[1])

    await served.app.admin('PUT', '/clients/shop', { allowed_roles: ['admin'] })
    await at.walk('clients/shop#admission')
    await page.getByRole('button', { name: 'Remove admin' }).waitFor()
    const [roles, groups] = await page
      .locator('.pair select:visible')
      .evaluateAll(all => all.map(each => each.getBoundingClientRect()).map(({ y, height }) => [y, height]))
    expect(roles).toEqual(groups)
  },
  120_000,
)

testInChromium(
  'CON-53 the link that skips the menu moves the focus and keeps the open section',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/organizations/default#joining')
    await isOpen('Who may join')
    await page.getByRole('link', { name: 'Skip to content' }).focus()
    await page.keyboard.press('Enter')
    expect(await focused()).toBe('content')
    await isOpen('Who may join')
    expect(page.url()).toEndWith('#joining')
  },
  120_000,
)
