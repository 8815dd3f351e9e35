import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create, refused } from '#test/support/callers.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

/**
 * A resource: its path, the name of its id field, and a valid body. The keys of `texts` are the places of
 * texts. Each function in `texts` returns a change of one text.
 */
interface Subject {
  path: string
  id: string
  body: Json
  texts: Record<string, (text: string) => Json>
  /** Places of texts that are allowed to have line feeds. */
  several?: string[]
}

const subjects: Subject[] = [
  {
    path: '/organizations',
    id: 'id',
    body: { name: 'Acme', slug: 'acme' },
    texts: {
      name: name => ({ name }),
      slug: slug => ({ slug }),
      display_name: display_name => ({ display_name }),
      'settings.theme': theme => ({ settings: { theme } }),
      'settings.session_ttl': session_ttl => ({ settings: { session_ttl } }),
      'settings.login_domains.0': domain => ({ settings: { login_domains: [domain] } }),
      'settings.allowed_domains.0': domain => ({ settings: { allowed_domains: [domain] } }),
    },
  },
  {
    path: '/roles',
    id: 'id',
    body: { name: 'editor', permissions: [] },
    texts: {
      name: name => ({ name }),
      description: description => ({ description }),
      'permissions.0': permission => ({ permissions: [permission] }),
      organization_id: organization_id => ({ organization_id }),
    },
    several: ['description'],
  },
  {
    path: '/groups',
    id: 'id',
    body: { name: 'Staff' },
    texts: {
      name: name => ({ name }),
      description: description => ({ description }),
      'roles.0': role => ({ roles: [role] }),
      organization_id: organization_id => ({ organization_id }),
    },
    several: ['description'],
  },
  {
    path: '/clients',
    id: 'client_id',
    body: {
      client_id: 'app',
      name: 'App',
      type: 'confidential',
      grant_types: ['client_credentials'],
      scopes: ['openid'],
    },
    texts: {
      client_id: client_id => ({ client_id }),
      name: name => ({ name }),
      description: description => ({ description }),
      type: type => ({ type }),
      organization_id: organization_id => ({ organization_id }),
      'redirect_uris.0': uri => ({ redirect_uris: [uri] }),
      'post_logout_redirect_uris.0': uri => ({ post_logout_redirect_uris: [uri] }),
      'web_origins.0': origin => ({ web_origins: [origin] }),
      'grant_types.0': grant_type => ({ grant_types: [grant_type] }),
      'scopes.0': scope => ({ scopes: [scope] }),
      'capabilities.0': capability => ({ capabilities: [capability] }),
      token_endpoint_auth_method: method => ({ token_endpoint_auth_method: method }),
      access_token_typ: typ => ({ access_token_typ: typ }),
      id_token_signed_response_alg: alg => ({ id_token_signed_response_alg: alg }),
      access_token_signed_response_alg: alg => ({ access_token_signed_response_alg: alg }),
    },
    several: ['description'],
  },
]

const hostile: Record<string, string> = {
  NUL: 'a\0b',
  'lone surrogate': 'a\ud800b',
  'lone low surrogate': '\udc00b',
  BOM: '\ufeffab',
  CRLF: 'ab\r\nset-cookie: x=1',
  CR: 'a\rb',
  escape: 'a\x1b[31mb',
  delete: 'a\x7fb',
}

const stored = () =>
  app.context.store.read(async q => {
    const { organizations, roles, groups, clients } = q.tables
    return [
      await q.select().from(organizations),
      await q.select().from(roles),
      await q.select().from(groups),
      await q.select().from(clients),
    ]
  })

describe('O-58', () => {
  for (const { path, id, body, texts, several = [] } of subjects)
    test(`forbidden characters are refused in every field of ${path}, and nothing is stored`, async () => {
      const made = await create(app, path, body)
      const before = await stored()
      for (const [field, put] of Object.entries(texts))
        for (const [what, text] of Object.entries(hostile)) {
          const fields = [field, field.replace(/\.0$/, '')]
          const other = id === 'client_id' ? { client_id: 'other' } : { name: 'Other', slug: undefined }
          const slug = path === '/organizations' ? { slug: 'other' } : {}
          const created = await app.admin('POST', path, { ...body, ...other, ...slug, ...put(text) })
          expect([field, what, fields.includes(refused(created)[0] ?? '')]).toEqual([field, what, true])
          const changed = await app.admin('PUT', `${path}/${made[id]}`, put(text))
          expect([field, what, fields.includes(refused(changed)[0] ?? '')]).toEqual([field, what, true])
        }
      for (const field of several) {
        const text = '  Two\n\tlines, ﬁne ü 漢 👩‍👩‍👧'
        const { body: answer } = await app.admin('PUT', `${path}/${made[id]}`, { [field]: text })
        expect(answer[field]).toBe(text)
        await app.admin('PUT', `${path}/${made[id]}`, { [field]: '' })
      }
      expect(await stored()).toMatchObject(
        before.map(rows => rows.map(({ updated_at: _, ...row }: Json) => row)),
      )
    })

  test('deceptive names are refused: line breaks, control characters, bidirectional marks, leading and trailing spaces', async () => {
    for (const name of [
      'a\nb',
      'a\tb',
      'a\u2028b',
      'a\u0085b',
      'a\u009b2Jb',
      'a\u202eb',
      'a\u2066b',
      ' a',
      'a ',
      '\u00a0a',
    ])
      for (const { path, body } of subjects)
        expect(refused(await app.admin('POST', path, { ...body, name }))).toEqual(['name'])
  })

  test('names in any language are stored and returned unchanged', async () => {
    for (const name of [
      'Ünïcödé',
      '漢字',
      'עברית',
      '👩‍👩‍👧',
      'e\u0301',
      'x'.repeat(128),
      "Robert'); DROP TABLE roles;--",
    ]) {
      const role = await create(app, '/roles', { name, permissions: [] })
      expect((await app.admin('GET', `/roles/${role.id}`)).body.name).toBe(name)
    }
  })

  test('a body that is not UTF-8, starts with a byte order mark, or is not JSON is 400', async () => {
    const before = await stored()
    const token = await app.tokenOf('gatehouse-admin', app.context.config.admin_client_secret ?? '')
    const good = JSON.stringify({ name: 'editor', permissions: [] })
    const bodies = [
      Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]),
      Buffer.from([0xff, 0xfe, 0x7b, 0x00]),
      Buffer.from(`\ufeff${good}`),
      Buffer.from(`${good}${good}`),
      Buffer.from(good.slice(0, -1)),
      Buffer.from(''),
      Buffer.from('{"name":"a\u0000b","permissions":[]}'),
    ]
    for (const body of bodies) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const answer = await app.call('/api/v1/admin/roles', { method: 'POST', headers, body })
      expect([answer.status, ((await answer.json()) as Json).error]).toEqual([400, 'invalid_request'])
    }
    expect(await stored()).toEqual(before)
  })
})

describe('O-72', () => {
  test('__proto__, constructor and prototype are unknown fields like any other, at every depth', async () => {
    for (const { path, body } of subjects)
      for (const name of ['__proto__', 'constructor', 'prototype', 'toString']) {
        const text = `${JSON.stringify(body).slice(0, -1)},"${name}":{"built_in":true}}`
        expect(refused(await app.admin('POST', path, text))).toEqual([name])
        const made = `{"${name}":{"isAdmin":true}}`
        const target = { '/organizations': 'default', '/clients': 'gatehouse-admin', '/roles': 'role_user' }[
          path
        ]
        if (target) expect(refused(await app.admin('PUT', `${path}/${target}`, made))).toEqual([name])
      }
    for (const name of ['__proto__', 'constructor'])
      for (const field of ['settings', 'settings.password_policy']) {
        const inner = `{"${name}":{"min_length":1}}`
        const text =
          field === 'settings' ? `{"settings":${inner}}` : `{"settings":{"password_policy":${inner}}}`
        expect(refused(await app.admin('PUT', '/organizations/default', text))).toEqual([`${field}.${name}`])
      }
    expect(({} as Json).isAdmin).toBeUndefined()
    expect(({} as Json).built_in).toBeUndefined()
  })

  test('the last value of a duplicate name counts, and is checked', async () => {
    const twice = '{"name":"first","name":"second","permissions":["*"],"permissions":[]}'
    expect((await app.admin('POST', '/roles', twice)).body).toMatchObject({ name: 'second', permissions: [] })
    const bad = '{"name":"third","permissions":[],"permissions":["*"]}'
    expect(refused(await app.admin('POST', '/roles', bad))).toEqual(['permissions.0'])
  })
})
