import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { startApp } from './app.ts'
import { closeChromium, type Opened, openPage } from './chromium.ts'
import { addClient, addUser, PASSWORD } from './people.ts'

/** Starts a server at its own address with users, a client and the administrator `ada`. */
export const serveConsole = async (parts: Parameters<typeof startApp>[1] = {}) => {
  const server = Bun.serve({
    hostname: 'localhost',
    port: 0,
    idleTimeout: 30,
    fetch: () => new Response(null),
  })
  const url = `http://localhost:${server.port}`
  let skipped = 0
  const now = () => Date.now() + skipped
  const app = await startApp({ url }, { ...parts, clock: { now, advance: () => {} } })
  server.reload({ fetch: (request, server) => app.fetch(request, server) })
  await addUser(app, 'ada', { last_name: 'Lovelace', roles: ['admin'] })
  for (const name of ['grace', 'alan', 'barbara']) await addUser(app, name)
  await addClient(app, 'shop', { name: 'Northwind shop', kind: 'web' })
  /** Moves the server's clock forward. */
  const skip = (ms: number): void => {
    skipped += ms
  }
  return { app, url, clock: { skip }, stop: () => server.stop(true) }
}

/** Opens the console, and signs in at the login page to which the console redirects. */
export const enterConsole = async (
  page: Page,
  url: string,
  path = '/console',
  username = 'ada',
): Promise<void> => {
  await page.goto(`${url}${path}`)
  await page.locator('[name=username]').fill(username)
  await page.locator('[name=password]').fill(PASSWORD)
  await page.locator('[name=password]').press('Enter')
  await page.waitForURL(`${url}${path}`)
}

/**
 * Saves the changes. Waits for the answer, because the message of an earlier change may still be shown. Then
 * waits until the page has read the answer: until then it asks before it leaves the changes.
 */
export const saveChanges = async (page: Page): Promise<void> => {
  const answered = page.waitForResponse(answer => answer.request().method() === 'PUT' && answer.ok())
  const button = page.getByRole('button', { name: 'Save changes' })
  await button.click()
  await answered
  await button.waitFor({ state: 'detached' })
}

/**
 * Serves the console, and opens a page for each test of a file. A test fails if the page violates its policy
 * or if its script has an error.
 */
export const inConsole = (
  parts: Parameters<typeof startApp>[1] = {},
  look: Parameters<typeof openPage>[0] = {},
) => {
  let served: Awaited<ReturnType<typeof serveConsole>>
  let opened: Opened
  let faults: string[]
  beforeEach(async () => {
    served = await serveConsole(parts)
    opened = await openPage({ viewport: { width: 1280, height: 900 }, ...look })
    faults = []
    opened.page.on('pageerror', error => faults.push(error.message))
    opened.page.on('console', message => {
      if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text()))
        faults.push(message.text())
    })
  })
  afterEach(async () => {
    expect(faults).toEqual([])
    await opened.close()
    await served.stop()
  })
  afterAll(closeChromium)
  return {
    get served() {
      return served
    },
    get page() {
      return opened.page
    },
    button: (name: string | RegExp) =>
      opened.page.getByRole('button', { name, exact: typeof name === 'string' }),
    heading: (name: string | RegExp) => opened.page.getByRole('heading', { level: 1, name }).waitFor(),
    /**
     * Follows a link within the console, because the page then keeps its token. Waits until the screen is
     * loaded. Unsaved changes are lost.
     */
    walk: async (path: string) => {
      const { page } = opened
      await page.evaluate(path => {
        const link = Object.assign(document.createElement('a'), { href: `/console/${path}` })
        document.body.append(link)
        link.click()
        link.remove()
        return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
      }, path)
      const leaving = page.getByRole('button', { name: 'Leave without saving' })
      if (await leaving.isVisible()) await leaving.click()
      await page.waitForFunction(() => !document.querySelector('main .loading'))
    },
    /** An object, as the admin API returns it. */
    stored: async (path: string) => (await served.app.admin('GET', path)).body,
    save: () => saveChanges(opened.page),
  }
}
