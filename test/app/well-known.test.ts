/** Tests the URLs that password managers, browsers and phones request by themselves. */
import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addOrganization } from '#test/support/people.ts'

const app = await startApp()
const { url } = app.context.config

test('PAG-28 password managers find the page for a new password and the page for passkeys', async () => {
  const change = await app.call('/.well-known/change-password')
  expect([change.status, change.headers.get('location')]).toEqual([302, `${url}/account/change-password`])
  const passkeys = await app.call('/.well-known/passkey-endpoints')
  expect([passkeys.status, passkeys.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ])
  expect(await passkeys.json()).toEqual({
    enroll: `${url}/account/security/add`,
    manage: `${url}/account/security`,
  })
  const plain = await startApp({ url: 'http://id.example.com' })
  expect((await plain.call('/.well-known/passkey-endpoints')).status).toBe(404)
})

test('PAG-28 browsers, phones and crawlers get icons and robots.txt', async () => {
  for (const path of ['/favicon.ico', '/apple-touch-icon.png']) {
    const icon = await app.call(path)
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/png'])
    // The address has no hash, so a new version must show an icon of its own soon.
    expect(icon.headers.get('cache-control')).toBe('public, max-age=86400')
    expect([...new Uint8Array(await icon.arrayBuffer()).slice(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47])
  }
  expect(await (await app.call('/robots.txt')).text()).toBe('User-agent: *\nDisallow: /\n')
})

test('PAG-29 theme-color and favicon come from the organization', async () => {
  const logo = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>').toString('base64')}`
  await addOrganization(app, 'acme', { settings: { accent_color: '#0b6e75', logo } })
  const headOf = async (path: string) => {
    const { html } = await openBrowser(app).get(path)
    return {
      colors: [...html.matchAll(/<meta name="theme-color" media="\(([^)]+)\)" content="([^"]+)">/g)].map(
        ([, media, color]) => [media, color],
      ),
      icon: /<link rel="icon" href="([^"]+)">/.exec(html)?.[1],
    }
  }
  const own = await headOf('/account?organization=acme')
  expect(own.colors).toEqual([
    ['prefers-color-scheme: light', '#0b6e75'],
    ['prefers-color-scheme: dark', '#0b6e75'],
  ])
  expect(own.icon).toMatch(/^\/assets\/organizations\/.+\.svg$/)
  const other = await headOf('/account')
  expect(other.colors.map(([, color]) => color)).toEqual(['#2b50d8', '#3f63ea'])
  expect(other.icon).toMatch(/^\/assets\/gate\.\w+\.svg$/)
})

test('PAG-30 terms, privacy and support stand in the footer of the organization’s pages', async () => {
  const links = { terms_url: 'https://acme.example/terms', support_url: 'mailto:help@acme.example' }
  await addOrganization(app, 'linked', { settings: links })
  const footerOf = async (path: string) => {
    const { html } = await openBrowser(app).get(path)
    return [...html.slice(html.indexOf('<footer>')).matchAll(/href="([^"]+)"/g)].map(([, href]) => href)
  }
  expect(await footerOf('/account?organization=linked')).toEqual(Object.values(links))
  expect(await footerOf('/account')).toEqual([])
  for (const url of [
    'javascript:alert(1)',
    'http://acme.example/terms',
    'https://user@acme.example/',
    'mailto:nobody',
    'https://acme.example/a b',
    `https://acme.example/${'x'.repeat(1100)}`,
    'data:text/html,x',
    '',
  ]) {
    const answer = await app.admin('PUT', '/organizations/linked', { settings: { privacy_url: url } })
    expect([url.slice(0, 30), answer.status]).toEqual([url.slice(0, 30), 422])
  }
  const stored = await app.admin('GET', '/organizations/linked')
  expect(stored.body.settings).toEqual(links)
})
