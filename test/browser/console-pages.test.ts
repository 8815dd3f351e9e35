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
  60_000,
)
