/** Tests the console's client, page and files without a browser. */
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { createInstance } from '#src/operations/first-start.ts'
import { BASE, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization, authorizeUrl } from '#test/support/people.ts'

// When the server runs from source, the import runs the bundler, which takes seconds on a busy machine.
beforeAll(() => import('#src/console/files.ts'), 60_000)

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const request = authorizeUrl('gatehouse-console', {
  redirect_uri: `${BASE}/console/callback`,
  scope: 'openid admin',
})
const navigation = { 'sec-fetch-mode': 'navigate' }

describe('CON-01 the client gatehouse-console', () => {
  test('is built in: 409 to changes and deletion, and in no list or export', async () => {
    const client = {
      client_id: 'gatehouse-console',
      name: 'Mine',
      type: 'public',
      grant_types: ['authorization_code'],
      redirect_uris: ['https://evil.example/'],
      scopes: [],
    }
    for (const [method, path, body] of [
      ['POST', '/clients', client],
      ['PUT', '/clients/gatehouse-console', { name: 'Mine' }],
      ['DELETE', '/clients/gatehouse-console'],
      ['POST', '/clients/gatehouse-console/secret'],
    ] as const)
      expect([method, (await app.admin(method, path, body)).status]).toEqual([method, 409])
    const { paths } = (await (await app.call('/api/v1/openapi.json')).json()) as Json
    const one = paths['/api/v1/admin/clients/{client_id}']
    for (const { responses } of [one.put, one.delete, paths['/api/v1/admin/clients/{client_id}/secret'].post])
      expect(responses[409].description).toContain('the console')
    const { body } = await app.admin('GET', '/clients')
    expect(body.data.map((each: Json) => each.client_id)).toEqual(['gatehouse-admin'])
    expect((await app.events()).map(({ type }) => type)).not.toContain('client.created')
  })

  test('gets an authorization request by a navigation alone, with the address of this instance', async () => {
    const status = async (url: string, headers: Record<string, string>) =>
      (await app.call(url, { headers })).status
    expect(await status(request, navigation)).toBe(200)
    for (const mode of ['no-cors', 'cors', 'same-origin'])
      expect([mode, await status(request, { 'sec-fetch-mode': mode })]).toEqual([mode, 400])
    expect(await status(request, {})).toBe(400)
    const foreign = request.replace(encodeURIComponent(BASE), encodeURIComponent('https://evil.example'))
    expect(await status(foreign, navigation)).toBe(400)
  })

  test('a stored client of that id stops the start with one line', async () => {
    await app.context.store.write(async tx => {
      const [row] = await tx.select().from(tx.tables.clients)
      await tx.insert(tx.tables.clients).values({ ...row, client_id: 'gatehouse-console' } as never)
    })
    await expect(createInstance(app.context)).rejects.toThrow(
      /^console: a stored client has the id gatehouse-console, /,
    )
    await createInstance({ ...app.context, config: { ...app.context.config, console: 'off' } })
  })
})

test('CON-02 GATEHOUSE_CONSOLE=off removes the page and the client', async () => {
  const off = await startApp({ console: 'off' })
  for (const path of ['/console', '/console/users']) expect((await off.call(path)).status).toBe(404)
  expect((await off.call(request, { headers: navigation })).status).toBe(400)
})

test('CON-03 pages of other sites cannot call the admin API, even with a token', async () => {
  const { id } = await addOrganization(app, 'acme')
  const authorization = `Bearer ${await callerOf(app, id, ['users:read'])}`
  const call = async (site: string) => {
    const headers = { authorization, 'sec-fetch-site': site }
    return (await app.call('/api/v1/admin/users', { headers })).status
  }
  expect([await call('cross-site'), await call('same-origin'), await call('none')]).toEqual([403, 200, 200])
})

test('CON-03 a page of a sibling subdomain gets no CORS headers, and 405 for its preflight', async () => {
  const { id } = await addOrganization(app, 'acme-sibling')
  const headers = { origin: 'https://app.example.com', 'sec-fetch-site': 'same-site' }
  const authorization = `Bearer ${await callerOf(app, id, ['users:read'])}`
  const preflight = {
    method: 'OPTIONS',
    headers: {
      ...headers,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization',
    },
  }
  const answers = [
    await app.call('/api/v1/admin/users', preflight),
    await app.call('/api/v1/admin/users', { headers: { ...headers, authorization } }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([405, 200])
  for (const answer of answers)
    expect([...answer.headers.keys()].filter(name => name.startsWith('access-control-'))).toEqual([])
})

describe('CON-04 the page', () => {
  test('loads its own script and style alone, requires Trusted Types and runs no inline code', async () => {
    for (const path of ['/console', '/console/users/usr_x', '/console/callback?code=x']) {
      const answer = await app.call(path)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      )
      const { 'x-request-id': _, 'content-security-policy': __, ...headers } = answer.headers.toJSON()
      expect(headers).toEqual({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
        'x-content-type-options': 'nosniff',
        'x-robots-tag': 'noindex',
      })
      const html = await answer.text()
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style="| on\w+=/)
    }
  })

  test('CON-52 says whether the server sends mail', async () => {
    const mailing = await startApp({}, { mail: { send: async () => {} } })
    const says = async (app: TestApp) =>
      /data-mail="(\w+)"/.exec(await (await app.call('/console')).text())?.[1]
    expect([await says(app), await says(mailing)]).toEqual(['off', 'on'])
  })

  test('has at most 60 kB of compressed script, style and shell, cacheable for ever', async () => {
    const shell = await (await app.call('/console')).text()
    const paths = [...shell.matchAll(/"(\/console\/assets\/[\da-z]+\.(?:js|css))"/g)].map(([, path]) => path)
    expect(paths.length).toBeGreaterThan(2)
    let size = Bun.gzipSync(shell).length
    for (const path of paths) {
      const answer = await app.call(path ?? '', { headers: { 'accept-encoding': 'gzip' } })
      const { 'x-request-id': _, 'content-type': type, ...headers } = answer.headers.toJSON()
      expect(headers).toEqual({
        'cache-control': 'public, max-age=31536000, immutable',
        'cross-origin-resource-policy': 'same-origin',
        vary: 'accept-encoding',
        'x-content-type-options': 'nosniff',
        'content-encoding': 'gzip',
      })
      expect(type).toBe(path?.endsWith('.js') ? 'text/javascript; charset=utf-8' : 'text/css; charset=utf-8')
      const packed = new Uint8Array(await answer.arrayBuffer())
      size += packed.length
      const plain = await (await app.call(path ?? '')).arrayBuffer()
      expect(Buffer.from(plain).equals(gunzipSync(packed))).toBe(true)
      const brotli = await app.call(path ?? '', { headers: { 'accept-encoding': 'gzip, br' } })
      expect(brotli.headers.get('content-encoding')).toBe('br')
    }
    for (const [accepted, coding] of [
      ['br;q=0, GZIP;q=0.5', 'gzip'],
      ['br;q=0.0 , gzip; q=0', null],
      ['x-br, xgzip', null],
    ] as const) {
      const answer = await app.call(paths[0] ?? '', { headers: { 'accept-encoding': accepted } })
      expect([accepted, answer.headers.get('content-encoding')]).toEqual([accepted, coding])
    }
    expect(size).toBeLessThan(60_000)
    expect((await app.call('/console/assets/000000000000.js')).status).toBe(404)
  })

  test('CON-22 names the language that the browser asks for, and only the words of that language', async () => {
    const shellIn = async (language: string) =>
      (await app.call('/console', { headers: { 'accept-language': language } })).text()
    const [english, german] = [await shellIn('en'), await shellIn('de-AT, fr;q=0.5')]
    expect(german).toContain('<html lang="de" dir="ltr"')
    expect(await shellIn('tlh')).toBe(english)
    const scriptsOf = (shell: string) => new Set(shell.match(/[\da-z]+\.js/g))
    expect(scriptsOf(german).difference(scriptsOf(english)).size).toBe(1)
  })
})
