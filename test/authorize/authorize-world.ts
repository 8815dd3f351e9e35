import { expect } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, REDIRECT } from '#test/support/people.ts'

/**
 * Starts a server with a web, a native and a machine client. Returns the server and helpers. `expectPage`
 * checks that a refusal is shown as a page, and that the page is the same for each reason.
 */
export const startAuthorize = async () => {
  const app = await startApp()
  await addUser(app, 'ada')
  await addClient(app, 'web', {
    redirect_uris: [REDIRECT, 'https://app.example/with?tenant=1', 'http://localhost:3000/cb'],
  })
  await addClient(app, 'native', {
    type: 'public',
    token_endpoint_auth_method: 'none',
    redirect_uris: [
      'http://127.0.0.1/cb',
      'http://[::1]/cb',
      'http://localhost/cb',
      'http://127.0.0.1:9000/x',
    ],
  })
  await addClient(app, 'machine', {
    grant_types: ['client_credentials'],
    redirect_uris: [REDIRECT],
  })
  const get = (more: Record<string, string | undefined> = {}, client_id = 'web') =>
    openBrowser(app).get(authorizeUrl(client_id, more))
  /** Returns the rows that requests have stored. A refused request stores no row. */
  const stored = () =>
    app.context.store.read(async q => [
      await q.select().from(q.tables.authorization_requests),
      await q.select().from(q.tables.stored_posts),
    ])
  /** Returns the answer without the parts that differ in every answer, such as request ids. */
  const comparable = ({ status, html, headers }: Page) => ({
    status,
    html: html.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID'),
    headers: [...headers].filter(([name]) => name !== 'x-request-id'),
  })
  const expectPage = async (page: Page): Promise<void> => {
    const before = comparable(await get({ redirect_uri: 'https://other.example/' }))
    expect(page.location).toBeUndefined()
    expect(comparable(page)).toEqual(before)
    expect(page.status).toBe(400)
    expect(page.headers.getSetCookie()).toEqual([])
  }
  return { app, get, stored, comparable, expectPage }
}
