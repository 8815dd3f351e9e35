/** Tests in a browser what the console finds by name, and what it shows first. */
import { expect } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { axeFindings } from '#test/support/axe.ts'
import { openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { addDynamicClient } from '#test/support/routes.ts'
import { grantTokens } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

const at = inConsole()
const { stored } = at

/** Signs a user in to a client. */
const logIn = async (client_id: string, username: string) => {
  const client = await addClient(at.served.app, client_id, { name: `The ${client_id}` })
  const user = (await stored(`/users?search=${username}`)).data[0]
  await grantTokens(at.served.app, client, user)
  return user
}

testInChromium(
  'CON-47 sessions are found by the name of a user or application, part of a name, or an id',
  async () => {
    const grace = await logIn('board', 'grace')
    await logIn('clinic', 'alan')
    const agent = 'Mozilla/5.0 (Linux; Android 10) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 EdgA/140.0'
    await at.page.setExtraHTTPHeaders({ 'user-agent': agent })
    await enterConsole(at.page, at.served.url, '/console/sessions')
    const rows = at.page.locator('.rows > li')
    await rows.filter({ hasText: 'gatehouse-console' }).getByText('Edge, Android').waitFor()
    const only = async (username: string) => {
      await at.page.waitForFunction(() => document.querySelectorAll('.rows > li').length === 1)
      expect(await rows.innerText()).toStartWith(username)
    }
    await rows.nth(2).waitFor()
    await at.page.getByLabel('User').fill('gra')
    await only('grace')
    await at.page.getByLabel('User').fill('')
    await rows.nth(2).waitFor()
    await at.page.getByLabel('Application').fill('CLIN')
    await only('alan')
    await at.page.getByLabel('User').fill('grace')
    await at.page.getByText('No session matches').waitFor()
    await at.page.getByLabel('Application').fill('board')
    await only('grace')
    await at.page.getByLabel('User').fill(grace.id)
    await only('grace')
    await at.button('End all of these').click()
    await at.page.getByRole('dialog').getByRole('button', { name: 'End them' }).click()
    await at.page.getByText('No session matches').waitFor()
    const left = (await stored('/sessions')).data.map(({ username }: { username: string }) => username)
    expect(left.sort()).toEqual(['ada', 'alan'])
  },
  120_000,
)

testInChromium(
  'CON-47 an application is found among several pages of applications, in its list and in the search of all',
  async () => {
    const { app, url } = at.served
    for (let n = 0; n < 100; n++) await addClient(app, `app-${n}`)
    await enterConsole(at.page, url, '/console/clients')
    const shop = at.page.getByRole('link', { name: /Northwind shop/ })
    await at.page.getByRole('link', { name: /app-99/ }).waitFor()
    expect(await shop.count()).toBe(0)
    await at.page.getByLabel('Search').fill('NORTH')
    await shop.waitFor()
    await at.page.getByLabel('Search').fill('nothing')
    await at.page.getByText('No application matches').waitFor()
    await at.page.keyboard.press('Control+k')
    await at.page.getByRole('combobox').fill('NORTH')
    await at.page.getByRole('option', { name: /Northwind shop/ }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-47 the filters of the audit log stand in even rows',
  async () => {
    await addOrganization(at.served.app, 'acme')
    await enterConsole(at.page, at.served.url, '/console/events')
    await at.page.getByRole('combobox', { name: 'Organization' }).waitFor()
    const margins = await at.page
      .locator('.filters > :is(.choice, .field)')
      .evaluateAll(all => all.map(each => getComputedStyle(each).marginBlockStart))
    expect(margins).toEqual(Array(7).fill('0px'))
  },
  120_000,
)

testInChromium(
  'CON-47 events are found by the names of their actor and organization',
  async () => {
    const { id } = await addOrganization(at.served.app, 'acme')
    await enterConsole(at.page, at.served.url, '/console/events')
    await at.page.getByRole('combobox', { name: 'Organization' }).fill('acme')
    await at.page.waitForURL(new RegExp(`organization_id=${id}`))
    await at.page.getByText('Organization created').last().waitFor()
    const ada = (await stored('/users?search=ada')).data[0]
    await at.page.getByRole('combobox', { name: 'Organization' }).fill('')
    await at.page.getByRole('combobox', { name: 'Actor' }).fill('ada')
    await at.page.waitForURL(`${at.served.url}/console/events?actor_id=${ada.id}`)
    await at.page.getByRole('button', { name: /Signed in.*ada@example/ }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-47 a filter takes the beginning of an organization’s name, and a form takes the whole name',
  async () => {
    const { id } = await addOrganization(at.served.app, 'acme', { name: 'Acme Laboratories' })
    await addDynamicClient(at.served.app, id)
    await enterConsole(at.page, at.served.url, '/console/dynamic-clients')
    await at.page.getByText('No dynamic applications').waitFor()
    await at.page.getByRole('combobox', { name: 'Organization' }).fill('acm')
    await at.page.getByRole('button', { name: /Agent/ }).waitFor()
    await at.button('Make a registration token').click()
    const dialog = at.page.getByRole('dialog')
    const organization = dialog.getByRole('combobox', { name: 'Organization' })
    await dialog.getByText('As curl').click()
    await organization.fill('acm')
    await dialog.locator('option[value=acme]').waitFor({ state: 'attached' })
    expect(await dialog.locator('pre').innerText()).toContain('"acm"')
    expect(await axeFindings(at.page)).toEqual([])
    await organization.fill('acme laboratories')
    await dialog.locator('pre').getByText(id).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-47 a part of several names narrows no list, but a full name does',
  async () => {
    const { app, url } = at.served
    const { id } = await addOrganization(app, 'acme', { name: 'Laboratories' })
    await addOrganization(app, 'acme-two', { name: 'Kitchens' })
    await addUser(app, 'wile', { organization_id: id })
    await enterConsole(at.page, url, '/console/users')
    const organization = at.page.getByRole('combobox', { name: 'Organization' })
    await organization.fill('acm')
    await at.page.locator('option[value=acme-two]').waitFor({ state: 'attached' })
    await at.page.getByRole('searchbox').fill('e')
    await at.page.waitForURL(`${url}/console/users?search=e`)
    await at.page.getByRole('link', { name: /Grace Example/ }).waitFor()
    await organization.fill('acme')
    await at.page.waitForURL(`${url}/console/users?search=e&organization_id=${id}`)
    await at.page.getByRole('link', { name: /wile/ }).waitFor()
    await organization.fill('nowhere')
    await at.page.getByText('No user matches').waitFor()
    await organization.fill('acm')
    await at.page.waitForURL(`${url}/console/users?search=e`)
    await at.page.getByRole('link', { name: /Grace Example/ }).waitFor()
    await organization.fill('acme')
    await at.page.waitForURL(`${url}/console/users?search=e&organization_id=${id}`)
    await organization.fill('acm')
    await at.page.waitForURL(`${url}/console/users?search=e`)
  },
  120_000,
)

testInChromium(
  'CON-47 the overview shows what people did, not the tokens of their programs',
  async () => {
    await logIn('board', 'grace')
    await enterConsole(at.page, at.served.url)
    await at.page.getByRole('button', { name: /Signed in.*ada@example/ }).waitFor()
    const titles = await at.page.locator('.event-title').allInnerTexts()
    expect(titles).toHaveLength(8)
    expect(titles.filter(title => /Token|Session/.test(title))).toEqual([])
    expect((await stored('/events?type=token.issued')).data.length).toBeGreaterThan(0)
  },
  120_000,
)

testInChromium(
  'CON-47 a user who has never signed in, and a theme of the server',
  async () => {
    const { id } = (await stored('/users?search=grace')).data[0]
    await enterConsole(at.page, at.served.url, `/console/users/${id}`)
    await at.page.getByText('Has never signed in').waitFor()
    await at.walk('looks/default')
    await at.page.getByRole('combobox', { name: 'Theme' }).selectOption('Ember')
    await at.save()
    expect((await stored('/organizations/default')).settings).toEqual({ theme: 'ember' })
    await at.page.getByRole('combobox', { name: 'Theme' }).selectOption('A theme of the data directory')
    await at.page.getByLabel('Name of the theme').fill('none-such')
    await at.save()
    expect((await stored('/organizations/default')).settings).toEqual({ theme: 'none-such' })
    await at.page.getByRole('combobox', { name: 'Theme' }).selectOption('Gatehouse')
    await at.save()
    expect((await stored('/organizations/default')).settings).toEqual({})
  },
  120_000,
)

testInChromium(
  'CON-47 screen readers announce how many rows a search leaves, and that it finds nothing',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/users')
    const status = at.page.locator('main [role=status]', { hasText: '4 of 4' })
    await status.waitFor()
    // Only a change of an element that is on the page already is announced.
    const element = await status.elementHandle()
    for (const [search, told] of [
      ['grace', '1 of 1'],
      ['zzzz', 'Nothing found.'],
      ['', '4 of 4'],
    ] as const) {
      await at.page.getByRole('searchbox').fill(search)
      await until(async () => (await element?.innerText()) === told)
    }
    await at.walk('events')
    const count = at.page.locator('.foot span')
    expect(await count.getAttribute('role')).toBe('status')
    await at.page.getByRole('button', { name: 'Follow live' }).click()
    expect(await count.getAttribute('role')).toBeNull()
  },
  120_000,
)

testInChromium(
  'CON-47 Back between two addresses of one list shows the rows of each',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/events?type=user.created')
    await at.page.locator('li.event', { hasText: 'User created' }).first().waitFor()
    await at.walk('events?type=client.created')
    await at.page.locator('li.event', { hasText: 'Application registered' }).first().waitFor()
    await at.back()
    await at.page.locator('li.event', { hasText: 'User created' }).first().waitFor()
    expect(await at.page.locator('.filters select').first().inputValue()).toBe('user.created')
    expect(at.page.url()).toBe(`${at.served.url}/console/events?type=user.created`)
    expect(await at.page.evaluate(() => document.activeElement?.tagName)).toBe('H1')
    await at.forward()
    await at.page.locator('li.event', { hasText: 'Application registered' }).first().waitFor()
  },
  120_000,
)

testInChromium(
  'CON-47 the days of the audit log are days of the person’s time zone',
  async () => {
    const { app, url, clock } = at.served
    const now = Date.now()
    const today = now - (now % DAY)
    clock.skip(today + DAY + HOUR - now)
    await addUser(app, 'edsger')
    const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10)
    // In this time zone, 01:00 UTC is 20:00 of the day before.
    const { page, close } = await openPage({ timezoneId: 'Etc/GMT+5' })
    await enterConsole(page, url, '/console/events?type=user.created')
    const rows = page.locator('li.event')
    await rows.first().waitFor()
    await page.getByLabel('From').fill(dayOf(today))
    await page.getByLabel('To', { exact: true }).fill(dayOf(today))
    await page.waitForURL(`${url}/console/events?type=user.created&from=${dayOf(today)}&to=${dayOf(today)}`)
    await rows.filter({ hasText: 'edsger' }).waitFor()
    await page.getByLabel('From').fill('')
    await page.getByLabel('To', { exact: true }).fill(dayOf(today - DAY))
    await rows.filter({ hasText: 'edsger' }).waitFor({ state: 'detached' })
    await close()
  },
  120_000,
)
