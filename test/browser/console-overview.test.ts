/** Tests the overview of the console in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, followCalls, serveConsole } from '#test/support/console.ts'
import { addClient, addUser } from '#test/support/people.ts'

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

const overview = () => page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()

testInChromium(
  'CON-23 what is wrong with the server stands on the overview, and the other checks behind a click',
  async () => {
    await enterConsole(page, served.url)
    await page.getByText('no mail can be sent: set smtp_url and mail_from').waitFor()
    expect(await page.getByText('the database opens with this master key').isVisible()).toBe(false)
    await page.getByText('further checks').click()
    await page.getByText('the database opens with this master key').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await opened.close()

    await create(served.app, '/roles', { name: 'helper', permissions: ['users:read'] })
    await addUser(served.app, 'helen', { roles: ['user', 'helper'] })
    opened = await openPage()
    page = opened.page
    await enterConsole(page, served.url, '/console', 'helen')
    await overview()
    expect(await page.locator('h2').count()).toBe(0)
    expect(await page.getByText('No permission').count()).toBe(0)
    expect(await page.locator('main .step').allInnerTexts()).toEqual(['Users', 'Guide'])
  },
  120_000,
)

testInChromium(
  'CON-23 the chart begins with the first day that has sign-ins, and shows a week at least',
  async () => {
    // At noon, so that no day ends during the test.
    served.clock.skip(DAY + 12 * HOUR - (Date.now() % DAY))
    await enterConsole(page, served.url)
    await overview()
    await page.locator('.chart').waitFor()
    expect(await page.locator('.chart g').count()).toBe(7)
    const { body } = await served.app.admin('GET', '/statistics')
    expect(await page.locator('.chart tbody tr').count()).toBe(body.data.length)
    expect(await page.locator('.chart rect.good').count()).toBe(1)
    expect(await page.locator('.chart g title').last().textContent()).toEndWith(' · Sign-ins: 1 · Failed: 0')
  },
  120_000,
)

testInChromium(
  'CON-23 an application is the next step until there is one that people sign in to',
  async () => {
    await served.app.admin('DELETE', '/clients/shop')
    for (const client_id of ['worker', 'reports', 'sync'])
      await addClient(served.app, client_id, {
        kind: null,
        redirect_uris: [],
        grant_types: ['client_credentials'],
        scopes: [],
      })
    await enterConsole(page, served.url)
    await page.getByRole('link', { name: 'Connect an application' }).waitFor()
    await addClient(served.app, 'shop')
    const answered = followCalls(page)
    await page.reload()
    await overview()
    await answered()
    expect(await page.getByRole('link', { name: 'Connect an application' }).count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-23 a second person is a next step until two have the role admin',
  async () => {
    const { app } = served
    const tim = await addUser(app, 'tim')
    await enterConsole(page, served.url)
    const step = page.getByRole('link', { name: 'Add a second person' })
    await step.waitFor()
    const answered = followCalls(page)
    const isShown = async () => {
      await page.reload()
      await overview()
      await answered()
      return (await step.count()) > 0
    }
    const group = await create(app, '/groups', { name: 'Chiefs', roles: ['admin'] })
    const { data } = (await app.admin('GET', '/users?role=admin')).body
    await app.admin('PUT', `/groups/${group.id}/members/${data[0].id}`)
    expect(await isShown()).toBe(true)
    await app.admin('PUT', `/groups/${group.id}/members/${tim.id}`)
    expect(await isShown()).toBe(false)
    await app.admin('DELETE', `/groups/${group.id}`)
    expect(await isShown()).toBe(true)
    await addUser(app, 'tina', { roles: ['admin'] })
    expect(await isShown()).toBe(false)
  },
  120_000,
)

testInChromium(
  'CON-23 a check that was not made does not count as one that works',
  async () => {
    const data = ['ok', 'ok', 'skip'].map((state, n) => ({
      name: ['files', 'database', 'loop'][n],
      state,
      text: 'A finding.',
    }))
    await page.route('**/admin/health', route => route.fulfill({ json: { version: '1.0.0', data } }))
    await enterConsole(page, served.url)
    await page.getByText('Everything works: 2 checks').click()
    await page.getByText('Unchecked').waitFor()
  },
  120_000,
)
