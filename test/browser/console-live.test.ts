/** The audit log of the console as it is written, in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { endFollowing } from '#src/audit/follow.ts'
import { axeFindings } from '#test/support/axe.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'

let served: Awaited<ReturnType<typeof serveConsole>>
let opened: Opened
let page: Page

beforeEach(async () => {
  served = await serveConsole()
  opened = await openPage({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' })
  page = opened.page
})
afterEach(async () => {
  await opened.close()
  await served.stop()
})
afterAll(closeChromium)

const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
const row = (name: RegExp) => page.locator('li.event', { hasText: name })
const follow = async () => {
  const opening = page.waitForResponse(/events\/stream/)
  await button('Follow live').click()
  expect((await opening).status()).toBe(200)
  await page.locator('.dot.live').waitFor()
}

testInChromium(
  'CON-43 new events appear by themselves, are held while paused, and are told politely',
  async () => {
    await enterConsole(page, served.url, '/console/events')
    await follow()
    await addUser(served.app, 'dorothy')
    await row(/User created.*dorothy|User created/)
      .first()
      .waitFor()
    const { body } = await served.app.admin('GET', '/events?type=user.created')
    await page.getByRole('status').getByText('new event').waitFor()
    expect(await axeFindings(page)).toEqual([])

    await button('Pause').click()
    const before = await page.locator('li.event').count()
    await addUser(served.app, 'edsger')
    await button(/Go on \([1-9]/).click()
    await page.locator('li.event').nth(before).waitFor()
    expect((await served.app.admin('GET', '/events?type=user.created')).body.pagination.total).toBe(
      body.pagination.total + 1,
    )
    await button('Follow live').click()
    await page.locator('.dot.live').waitFor({ state: 'detached' })
    expect(served.app.context.tails.open.size).toBe(0)
  },
  60_000,
)

testInChromium(
  'CON-43 a stream that breaks is opened again and misses no event; one without its session asks for a login',
  async () => {
    await enterConsole(page, served.url, '/console/events?type=user.created')
    await follow()
    await page.locator('li.event').nth(3).waitFor()
    const again = page.waitForResponse(/events\/stream/)
    endFollowing(served.app.context)
    const user = await addUser(served.app, 'edsger')
    await again
    await page.locator('li.event').nth(4).waitFor()
    await page.locator('li.event').first().click()
    await page.getByText(user.id).first().waitFor()

    const { body } = await served.app.admin('GET', '/users?search=ada')
    await served.app.admin('DELETE', `/users/${body.data[0].id}/sessions`)
    await page.getByRole('dialog', { name: 'Your login has ended' }).waitFor()
    const [popup] = await Promise.all([page.waitForEvent('popup'), button('Continue').click()])
    await popup.locator('[name=password]').fill(PASSWORD)
    await popup.locator('[name=password]').press('Enter')
    await page.locator('.dot.live').waitFor()
  },
  60_000,
)
