/** Tests in a browser that the console shows new events of the audit log without a reload. */
import { expect } from 'bun:test'
import { endFollowing } from '#src/audit/tails.ts'
import { axeFindings } from '#test/support/axe.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'
import { until } from '#test/support/until.ts'

const at = inConsole({}, { reducedMotion: 'reduce' })

const row = (name: RegExp) => at.page.locator('li.event', { hasText: name })
const follow = async () => {
  const opening = at.page.waitForResponse(/events\/stream/)
  await at.button('Follow live').click()
  expect((await opening).status()).toBe(200)
  await at.page.locator('.dot.live').waitFor()
}

testInChromium(
  'CON-43 new events appear without a reload, are held back while paused, and are announced politely',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/events')
    await follow()
    // The announcement is shown for five seconds.
    const told = at.page.getByRole('status').getByText('new event').waitFor()
    await addUser(at.served.app, 'dorothy')
    await row(/User created.*dorothy|User created/)
      .first()
      .waitFor()
    const { body } = await at.served.app.admin('GET', '/events?type=user.created')
    await told
    expect(await axeFindings(at.page)).toEqual([])

    await at.button('Pause').click()
    const before = await at.page.locator('li.event').count()
    await addUser(at.served.app, 'edsger')
    await at.button(/Resume \([1-9]/).click()
    await at.page.locator('li.event').nth(before).waitFor()
    expect((await at.served.app.admin('GET', '/events?type=user.created')).body.pagination.total).toBe(
      body.pagination.total + 1,
    )
    await at.button('Follow live').click()
    await at.page.locator('.dot.live').waitFor({ state: 'detached' })
    // The server detects the end of the connection a moment later than the page.
    await until(() => at.served.app.context.tails.open.size === 0)
  },
  120_000,
)

testInChromium(
  'CON-43 a stream that breaks is opened again and misses no event; without a session it asks for a login',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/events?type=user.created')
    await follow()
    await at.page.locator('li.event').nth(3).waitFor()
    await addUser(at.served.app, 'dorothy')
    await at.page.locator('li.event').nth(4).waitFor()
    const again = at.page.waitForResponse(/events\/stream/)
    endFollowing(at.served.app.context)
    const user = await addUser(at.served.app, 'edsger')
    await again
    await at.page.locator('li.event').nth(5).waitFor()
    await at.page.locator('li.event').first().click()
    await at.page.getByText(user.id).first().waitFor()

    const { body } = await at.served.app.admin('GET', '/users?search=ada')
    await at.served.app.admin('DELETE', `/users/${body.data[0].id}/sessions`)
    await at.page.getByRole('dialog', { name: 'Your sign-in has ended' }).waitFor()
    const [popup] = await Promise.all([at.page.waitForEvent('popup'), at.button('Continue').click()])
    await popup.locator('[name=password]').fill(PASSWORD)
    await popup.locator('[name=password]').press('Enter')
    await at.page.locator('.dot.live').waitFor()
  },
  120_000,
)

testInChromium(
  'CON-43 more events than the console keeps are all within reach',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/events?type=organization.updated')
    await follow()
    const { app } = at.served
    for (let n = 1; n <= 510; n++)
      await app.admin('PUT', '/organizations/org_default', { display_name: `Name ${n}` })
    await at.page.getByText(/of 510$/).waitFor()
    await at.button('Show more').click()
    await at.page.locator('li.event').nth(150).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-43 an event that the stream and the list both have is counted once, beyond the first page too',
  async () => {
    const { app, url } = at.served
    await enterConsole(at.page, url, '/console/events?type=organization.updated')
    await at.page.getByText('No event matches these filters').waitFor()
    const released = Promise.withResolvers<void>()
    await at.page.route(/admin\/events\?/, async route => {
      await released.promise
      await route.continue()
    })
    await follow()
    for (let n = 1; n <= 120; n++)
      await app.admin('PUT', '/organizations/org_default', { display_name: `Name ${n}` })
    await at.page.getByText('120 of 120').waitFor()
    released.resolve()
    await at.button('Show more').waitFor()
    expect(await at.page.locator('.foot').innerText()).toStartWith('120 of 120')
  },
  120_000,
)
