import type { Page } from 'playwright-core'
import { startApp } from './app.ts'
import { addClient, addUser, PASSWORD } from './people.ts'

/** A server at its own address with users, a client and the administrator `ada`. */
export const serveConsole = async () => {
  const server = Bun.serve({ hostname: 'localhost', port: 0, fetch: () => new Response(null) })
  const url = `http://localhost:${server.port}`
  let skipped = 0
  const now = () => Date.now() + skipped
  const app = await startApp({ url }, { clock: { now, advance: () => {} } })
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

/** Opens the console and logs in at the page that it leads to. */
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
