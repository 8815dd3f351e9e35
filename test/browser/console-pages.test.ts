/** Tests the pages of lists in the console, in a browser. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addUser } from '#test/support/people.ts'

const at = inConsole()

testInChromium(
  'CON-48 rows and selected users stay when the next page cannot be read, which can be tried again',
  async () => {
    const { page, served } = at
    const cursor = /cursor=/
    for (let n = 0; n < 50; n++) await addUser(served.app, `user${n}`)
    for (let n = 0; n < 51; n++) await create(served.app, '/groups', { name: `group${n}` })
    await enterConsole(page, served.url, '/console/users')
    await page.getByLabel('Select user49', { exact: true }).check()
    for (const [path, rows] of [
      ['users', page.locator('tbody tr')],
      ['groups', page.locator('main a.row')],
    ] as const) {
      if (path !== 'users') await at.walk(path)
      await rows.nth(49).waitFor()
      await page.route(cursor, route => route.abort())
      await at.button('Show more').click()
      const failure = page.locator('main .empty', { hasText: 'This could not be loaded' })
      await failure.waitFor()
      expect(await rows.count()).toBe(50)
      expect(await axeFindings(page)).toEqual([])
      await page.unroute(cursor)
      await failure.getByRole('button', { name: 'Try again' }).click()
      await rows.nth(50).waitFor()
      await failure.waitFor({ state: 'detached' })
      if (path === 'users')
        expect(await page.getByLabel('Select user49', { exact: true }).isChecked()).toBe(true)
    }
  },
  120_000,
)

/** Holds back the answers of this URL. The server answers before the answer is held. */
const holdAnswer = async (url: RegExp) => {
  const { page } = at
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  await page.route(url, async route => {
    const response = await route.fetch()
    asked.resolve()
    await released.promise
    await route.fulfill({ response })
  })
  const release = async () => {
    const answered = page.waitForResponse(url)
    released.resolve()
    await (await answered).finished()
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
  }
  return { asked: asked.promise, release }
}

testInChromium(
  'CON-55 a page that arrives after the list was read again does not bring back a removed row',
  async () => {
    const { page, served } = at
    const { app } = served
    const group = await create(app, '/groups', { name: 'Operators' })
    for (let n = 0; n < 52; n++) {
      const { id } = await addUser(app, `user${n}`)
      await app.admin('PUT', `/groups/${group.id}/members/${id}`)
    }
    await enterConsole(page, served.url, `/console/groups/${group.id}`)
    const shown = (text: string) => page.getByText(text, { exact: true })
    const remove = () =>
      at
        .button(/^Remove · user/)
        .first()
        .click()
    await shown('50 of 52').waitFor()

    const second = await holdAnswer(/members\?.*cursor=/)
    await at.button('Show more').click()
    await second.asked
    await remove()
    await shown('50 of 51').waitFor()
    await second.release()
    expect(await at.button(/^Remove · user/).count()).toBe(50)

    const again = await holdAnswer(/members\?limit=50$/)
    await remove()
    await again.asked
    const late = await holdAnswer(/members\?.*cursor=/)
    await at.button('Show more').click()
    await late.asked
    await again.release()
    await shown('50 of 50').waitFor()
    await late.release()
    expect(await at.button(/^Remove · user/).count()).toBe(50)
    expect((await at.stored(`/groups/${group.id}`)).member_count).toBe(50)
  },
  120_000,
)
