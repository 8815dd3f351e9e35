import { beforeEach, describe, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

const app = await startApp()
const svg = (fill: string) =>
  `data:image/svg+xml;base64,${btoa(`<svg xmlns="http://www.w3.org/2000/svg"><path fill="${fill}" d="M0 0h9v9z"/></svg>`)}`
const change = (client_id: string, fields: Json) => app.admin('PUT', `/clients/${client_id}`, fields)
const assets = () =>
  app.context.store.read(async q =>
    (await q.select().from(q.tables.organization_assets)).map(({ hash }) => hash),
  )
const isServed = async (url: string): Promise<boolean> => (await app.call(url)).status === 200

let made = 0
const signedIn = async (more: Json = {}, start = '/account') => {
  const user = await addUser(app, `person-${++made}`, more)
  const browser = openBrowser(app)
  await signIn(browser, await browser.get(start), user.username)
  return { user, browser }
}
const startable = async (browser: Browser): Promise<string[]> => {
  const { html } = await browser.get('/account/applications')
  const [, list = ''] = /<ul class="apps">(.*?)<\/ul>/s.exec(html) ?? []
  return [...list.matchAll(/href="([^"]*)"/g)].map(([, url = '']) => url)
}

beforeEach(async () => {
  await app.events()
})

describe('the logo of a client', () => {
  test('PEO-32 is stored by its hash, served sandboxed, and removed with the last use', async () => {
    await addClient(app, 'one')
    await addClient(app, 'two')
    await app.events()
    const { body } = await change('one', { logo: svg('red') })
    expect(body.logo).toMatch(/^\/assets\/organizations\/org_default\/[0-9a-f]{32}\.svg$/)
    expect(await app.events()).toMatchObject([{ type: 'client.updated', metadata: { fields: ['logo'] } }])
    const answer = await app.call(body.logo)
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect((await change('one', { logo: body.logo })).status).toBe(200)
    expect(await app.events()).toEqual([])
    await change('two', { logo: svg('red') })
    await change('one', { logo: null })
    expect(await isServed(body.logo)).toBe(true)
    // Removing a picture of a client keeps the organization's pictures, and vice versa.
    const own = await app.admin('PUT', '/organizations/default', { settings: { logo: svg('blue') } })
    expect(await isServed(body.logo)).toBe(true)
    expect((await app.admin('DELETE', '/clients/two')).status).toBe(204)
    expect(await isServed(body.logo)).toBe(false)
    expect(await isServed(own.body.settings.logo)).toBe(true)
    await app.admin('PUT', '/organizations/default', { settings: { logo: null } })
    expect(await assets()).toEqual([])
  })

  test('PEO-32 is no other URL, no script and no bomb', async () => {
    await addClient(app, 'bad-logo')
    const huge = Buffer.alloc(33)
    huge.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
    huge.writeUInt32BE(5000, 16)
    huge.writeUInt32BE(5000, 20)
    for (const logo of [
      'https://elsewhere.example/logo.png',
      `/assets/organizations/org_default/${'0'.repeat(32)}.png`,
      'data:text/html;base64,PGI+',
      `data:image/png;base64,${btoa('<script>')}`,
      `data:image/png;base64,${huge.toString('base64')}`,
    ]) {
      const { status, body } = await change('bad-logo', { logo })
      expect([logo, status, body.details[0].field]).toEqual([logo, 422, 'logo'])
      const created = await app.admin('POST', '/clients', {
        client_id: 'never',
        name: 'Never',
        type: 'public',
        grant_types: ['authorization_code'],
        scopes: [],
        logo,
      })
      expect([logo, created.status]).toEqual([logo, 422])
    }
    expect(await assets()).toEqual([])
  })

  test('PEO-32 is exported with its content, and applied again without a change', async () => {
    const uris = { client_uri: 'https://seeded.example/', policy_uri: 'https://seeded.example/privacy' }
    await addClient(app, 'seeded', { logo: svg('green'), ...uris })
    const { clients } = (await exportSeed(app.context, { secrets: true })) as Json
    const exported = clients.find(({ client_id }: Json) => client_id === 'seeded')
    expect(exported).toMatchObject({ logo: svg('green'), ...uris })
    expect(exported).not.toHaveProperty('tos_uri')
    expect(await applySeed(app.context, readSeed({ clients: [exported] }), {})).toEqual([])
    const fresh = await startApp()
    await applySeed(fresh.context, readSeed({ clients: [exported] }), {})
    const copy = (await fresh.admin('GET', '/clients/seeded')).body
    expect((await fresh.call(copy.logo)).status).toBe(200)
  })
})

test('PEO-32 the addresses of a client are https, or http on a loopback address', async () => {
  await addClient(app, 'linked')
  for (const name of ['client_uri', 'policy_uri', 'tos_uri', 'initiate_login_uri']) {
    for (const url of ['https://linked.example/x?y=1', 'http://127.0.0.1:3000/', 'http://localhost/'])
      expect([name, url, (await change('linked', { [name]: url })).body[name]]).toEqual([name, url, url])
    for (const url of [
      'http://linked.example/',
      'javascript:alert(1)',
      'https://a:b@linked.example/',
      'https://linked.example/#x',
      '/path',
      '',
      `https://linked.example/${'x'.repeat(1024)}`,
    ])
      expect([name, url, (await change('linked', { [name]: url })).status]).toEqual([name, url, 422])
  }
})

test('PEO-32 consent shows logo and links of a client, but not those of a client that registered itself', async () => {
  const links = { client_uri: 'https://shown.example/', tos_uri: 'https://shown.example/terms' }
  const { logo } = await addClient(app, 'shown', { consent_required: true, logo: svg('teal'), ...links })
  const { browser } = await signedIn()
  const { html } = await browser.get(authorizeUrl('shown'))
  expect(html).toContain(`<img class="app-logo large" src="${logo}" alt="">`)
  for (const url of Object.values(links)) expect(html).toContain(`href="${url}" target="_blank"`)
  expect(html).not.toContain('Privacy policy')
})

describe('the applications of a person', () => {
  test('PEO-33 have a start address, admit the person, and are of the person’s organization or of all', async () => {
    const own = await addOrganization(app, 'starters')
    await create(app, '/roles', { organization_id: own.id, name: 'boss', permissions: [] })
    const of = (client_id: string, more: Json) =>
      addClient(app, client_id, { organization_id: own.id, name: client_id, ...more })
    await of('a-open', { client_uri: 'https://open.example/' })
    await of('b-bosses', { client_uri: 'https://bosses.example/', allowed_roles: ['boss'] })
    await of('c-starts', {
      client_uri: 'https://starts.example/',
      initiate_login_uri: 'https://starts.example/login?x=1',
    })
    await of('d-homeless', {})
    const everywhere = { capabilities: ['cross_organization'], client_uri: 'https://all.example/' }
    await addClient(app, 'e-all', { name: 'e-all', ...everywhere })
    await addClient(app, 'f-default', { client_uri: 'https://default.example/' })
    const { user, browser } = await signedIn({ organization_id: own.id }, '/account?organization=starters')
    const starts = 'https://starts.example/login?x=1&amp;iss=http%3A%2F%2Flocalhost%3A8080'
    expect(await startable(browser)).toEqual(['https://open.example/', starts, 'https://all.example/'])
    await app.admin('PUT', `/users/${user.id}`, { roles: ['user', 'boss'] })
    expect(await startable(browser)).toEqual([
      'https://open.example/',
      'https://bosses.example/',
      starts,
      'https://all.example/',
    ])
  })
})
