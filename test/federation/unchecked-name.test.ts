import { expect, test } from 'bun:test'
import { openBrowser } from '#test/support/browser.ts'
import { authorizeUrl } from '#test/support/people.ts'
import { addProvider, goThrough, startFederated } from './upstream.ts'

test('DCR-06 the page that asks for the profile names a client that registered itself by its host', async () => {
  const { app, upstream } = await startFederated()
  await addProvider(app, 'asking')
  await app.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
  const redirect_uri = 'https://agent.example/callback'
  const registered = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Payroll',
      redirect_uris: [redirect_uri],
      token_endpoint_auth_method: 'none',
    }),
  })
  const { client_id } = (await registered.json()) as { client_id: string }
  const entry = authorizeUrl(client_id, { redirect_uri }).replace('/oauth/authorize', '/oauth/social/asking')
  const page = await goThrough(openBrowser(app), upstream, entry, { email: '', name: '' })
  expect(page.html).toContain('name="first_name"')
  expect(page.html).toContain('agent.example')
  expect(page.html).not.toContain('Payroll')
})
