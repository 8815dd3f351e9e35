/** Tests the states of each screen of the console in a browser: empty, loading, failed and not permitted. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addUser } from '#test/support/people.ts'

const at = inConsole({}, { reducedMotion: 'reduce' })

/** Fills the instance. Returns the paths of the screens that read data, with the overview last. */
const reading = async (): Promise<string[]> => {
  const [first = '', ...paths] = await fillConsole(at.served.app)
  return [...paths.filter(path => !/^\/(users\/new|clients\/\+new|guide.*)$/.test(path)), first]
}

testInChromium(
  'CON-48 a list without rows says so',
  async () => {
    await enterConsole(at.page, at.served.url)
    for (const path of [
      'invitations',
      'registrations',
      'dynamic-clients',
      'apis',
      'groups',
      'identity-providers',
      'webhooks',
    ]) {
      await at.walk(path)
      await at.page.locator('main .empty-title').first().waitFor()
      expect([path, await axeFindings(at.page)]).toEqual([path, []])
    }
  },
  300_000,
)

testInChromium(
  'CON-48 a screen whose calls fail names the failure with its request id, and offers to try again',
  async () => {
    const paths = await reading()
    await enterConsole(at.page, at.served.url)
    await at.heading('Overview')
    const problem = {
      error: 'server_error',
      error_description: 'The disk is full.',
      status: 500,
      request_id: '01a2',
    }
    await at.page.route(/\/api\/v1\/admin\/(?!me$)/, route => route.fulfill({ status: 500, json: problem }))
    for (const path of paths) {
      await at.walk(path.slice(1))
      const shown = at.page.locator('main .empty', { hasText: 'The disk is full.' }).first()
      await shown.getByText('01a2').waitFor()
      await shown.getByRole('button', { name: 'Try again' }).waitFor()
      expect([path, await axeFindings(at.page)]).toEqual([path, []])
    }
    await at.page.unrouteAll()
    await at.walk('groups')
    await at.page.getByRole('link', { name: /Warehouse/ }).waitFor()
  },
  300_000,
)

testInChromium(
  'CON-48 a screen is named, and says that it loads, before its calls are answered',
  async () => {
    const paths = await reading()
    await enterConsole(at.page, at.served.url)
    await at.heading('Overview')
    const { promise: end, resolve } = Promise.withResolvers<void>()
    await at.page.route(/\/api\/v1\/admin\/(?!me$)/, async route => {
      await end
      await route.abort()
    })
    for (const path of paths) {
      await at.page.evaluate(path => {
        history.pushState(null, '', `/console${path}`)
        dispatchEvent(new PopStateEvent('popstate'))
      }, path)
      await at.page.locator('main h1').waitFor()
      await at.page.getByRole('status', { name: 'Loading' }).first().waitFor()
      expect([path, await axeFindings(at.page)]).toEqual([path, []])
    }
    resolve()
  },
  300_000,
)

testInChromium(
  'CON-48 a screen that a person may not see says so',
  async () => {
    const { app, url } = at.served
    const paths = await reading()
    await create(app, '/roles', { name: 'helper', permissions: ['groups:read'] })
    await addUser(app, 'helen', { roles: ['user', 'helper'] })
    await enterConsole(at.page, url, '/console', 'helen')
    await at.heading('Overview')
    for (const path of paths.filter(path => path !== '' && !path.startsWith('/groups'))) {
      await at.walk(path.slice(1))
      await at.page.locator('main').getByText('No permission').first().waitFor()
      expect([path, await axeFindings(at.page)]).toEqual([path, []])
    }
  },
  300_000,
)

testInChromium(
  'CON-48 an address without a screen says so, in a heading that gets the focus',
  async () => {
    await enterConsole(at.page, at.served.url)
    await at.walk('nowhere')
    await at.heading('Not found')
    expect(await at.page.title()).toBe('Not found · Gatehouse')
    expect(await at.page.evaluate(() => document.activeElement?.tagName)).toBe('H1')
    expect(await axeFindings(at.page)).toEqual([])
    await at.page.locator('.back').click()
    await at.heading('Overview')
  },
  120_000,
)
