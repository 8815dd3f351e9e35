import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page, Request } from 'playwright-core'
import { startApp } from './app.ts'
import { closeChromium, type Opened, openPage } from './chromium.ts'
import { addClient, addUser, PASSWORD } from './people.ts'

/** Starts a server at its own address with users, a client and the administrator `ada`. */
export const serveConsole = async (parts: Parameters<typeof startApp>[1] = {}) => {
  // The first import runs the bundler, which can take longer than a browser waits for a page.
  await import('#src/console/files.ts')
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
 * Returns a function that waits until each call of the page is answered, and its answer is shown. Playwright
 * reports an idle network once for each document, also while a busy machine delays the next call of the page.
 */
export const followCalls = (page: Page): (() => Promise<void>) => {
  const open = new Set<Request>()
  let begun = 0
  page.on('request', request => {
    // The browser does not report the end of the calls of the last document.
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) open.clear()
    open.add(request)
    begun++
  })
  for (const end of ['requestfinished', 'requestfailed'] as const)
    page.on(end as 'requestfinished', request => void open.delete(request))
  return async () => {
    for (let seen = -1; open.size > 0 || seen !== begun; ) {
      seen = begun
      // Preact shows an answer in one frame. After the next frame it runs effects, which can begin calls.
      await page.evaluate(async () => {
        for (let frames = 0; frames < 3; frames++)
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)))
      })
    }
  }
}

/** Goes one entry of the history back or forward. Resolves when the page has noticed. */
const travel = (page: Page, delta: 1 | -1): Promise<void> =>
  page.evaluate(
    delta =>
      new Promise(done => {
        addEventListener('popstate', () => done(), { once: true })
        history.go(delta)
      }),
    delta,
  )

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
  let answered: () => Promise<void>
  let faults: string[]
  beforeEach(async () => {
    served = await serveConsole(parts)
    opened = await openPage({ viewport: { width: 1280, height: 900 }, ...look })
    answered = followCalls(opened.page)
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
    /**
     * Goes back in the page itself. Playwright's `goBack` asks the browser for the current entry, and the
     * browser may not know yet that the page has added one.
     */
    back: () => travel(opened.page, -1),
    forward: () => travel(opened.page, 1),
    /** Waits until all calls of the page are answered and shown. */
    answered: () => answered(),
    /** An object, as the admin API returns it. */
    stored: async (path: string) => (await served.app.admin('GET', path)).body,
    save: () => saveChanges(opened.page),
  }
}
