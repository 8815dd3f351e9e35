import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create, listAll, refused } from '#test/support/callers.ts'

let app: TestApp

const machine = {
  client_id: 'machine',
  name: 'Machine',
  type: 'confidential',
  grant_types: ['client_credentials'],
  scopes: ['users:read', 'reports'],
}
const spa = {
  client_id: 'spa',
  name: 'Single page',
  type: 'public',
  redirect_uris: ['https://app.example/cb'],
  grant_types: ['authorization_code'],
  scopes: ['openid'],
}

beforeEach(async () => {
  app = await startApp()
  await app.admin('GET', '/roles')
  await app.events()
})

describe('validation', () => {
  test('CLI-09 each field, on POST and on PUT', async () => {
    await create(app, '/clients', machine)
    const bad: [Json, string][] = [
      [{ name: '' }, 'name'],
      [{ description: 'x'.repeat(1001) }, 'description'],
      [{ redirect_uris: 'https://app.example' }, 'redirect_uris'],
      [{ web_origins: ['https://app.example/'] }, 'web_origins.0'],
      [{ web_origins: ['https://App.example'] }, 'web_origins.0'],
      [{ web_origins: ['https://app.example:443'] }, 'web_origins.0'],
      [{ web_origins: ['https://app.example/x'] }, 'web_origins.0'],
      [{ web_origins: ['*'] }, 'web_origins.0'],
      [{ web_origins: ['https://*.example'] }, 'web_origins.0'],
      [{ web_origins: ['null'] }, 'web_origins.0'],
      [{ web_origins: ['file:///x'] }, 'web_origins.0'],
      [{ grant_types: ['password'] }, 'grant_types.0'],
      [{ scopes: ['a b'] }, 'scopes.0'],
      [{ scopes: [''] }, 'scopes.0'],
      [{ scopes: ['*'] }, 'scopes.0'],
      [{ scopes: ['a"b'] }, 'scopes.0'],
      [{ scopes: ['ä'] }, 'scopes.0'],
      [{ token_endpoint_auth_method: 'private_key_jwt' }, 'token_endpoint_auth_method'],
      [{ access_token_ttl: 59 }, 'access_token_ttl'],
      [{ access_token_ttl: 86_401 }, 'access_token_ttl'],
      [{ access_token_ttl: '3600' }, 'access_token_ttl'],
      [{ access_token_ttl: 60.5 }, 'access_token_ttl'],
      [{ refresh_token_ttl: 299 }, 'refresh_token_ttl'],
      [{ refresh_token_ttl: 31_536_001 }, 'refresh_token_ttl'],
      [{ capabilities: ['root'] }, 'capabilities.0'],
      [{ consent_required: 'no' }, 'consent_required'],
      [{ id_token_signed_response_alg: 'none' }, 'id_token_signed_response_alg'],
      [{ id_token_signed_response_alg: 'HS256' }, 'id_token_signed_response_alg'],
      [{ access_token_signed_response_alg: 'ES512K' }, 'access_token_signed_response_alg'],
      [{ access_token_typ: 'jwt' }, 'access_token_typ'],
      [{ refresh_token_reuse_window: 31 }, 'refresh_token_reuse_window'],
      [{ refresh_token_reuse_window: -1 }, 'refresh_token_reuse_window'],
      [{ client_secret: 'mine' }, 'client_secret'],
      [{ secret_hash: 'mine' }, 'secret_hash'],
    ]
    for (const [change, field] of bad) {
      expect(
        refused(await app.admin('POST', '/clients', { ...machine, client_id: 'other', ...change })),
      ).toEqual([field])
      expect(refused(await app.admin('PUT', '/clients/machine', change))).toEqual([field])
    }
    const required = ['client_id', 'grant_types', 'name', 'scopes', 'type']
    expect(refused(await app.admin('POST', '/clients', {}))).toEqual(required)
    expect(refused(await app.admin('POST', '/clients', { ...machine, type: 'secret' }))).toEqual(['type'])
    expect(refused(await app.admin('POST', '/clients', { ...machine, organization_id: 'org_x' }))).toEqual([
      'organization_id',
    ])
    expect((await app.admin('GET', '/clients')).body.pagination.total).toBe(2)
  })

  test('CLI-07 each upper bound, algorithm and method is accepted', async () => {
    await create(app, '/clients', machine)
    const good = [
      { access_token_ttl: 60, refresh_token_ttl: 300 },
      { access_token_ttl: 86_400, refresh_token_ttl: 31_536_000, refresh_token_reuse_window: 30 },
      { token_endpoint_auth_method: 'client_secret_post', access_token_typ: 'JWT', consent_required: false },
      { capabilities: ['token_introspection', 'cross_organization'] },
      { web_origins: ['https://app.example', 'http://localhost:3000'], description: 'Two\nlines.' },
      ...['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', null].map(alg => ({
        id_token_signed_response_alg: alg,
        access_token_signed_response_alg: alg,
      })),
    ]
    for (const change of good)
      expect((await app.admin('PUT', '/clients/machine', change)).body).toMatchObject(change)
    const { keys } = (await (await app.call('/.well-known/jwks.json')).json()) as { keys: { alg: string }[] }
    expect([...new Set(keys.map(key => key.alg))].sort()).toEqual([
      'ES256',
      'ES384',
      'ES512',
      'RS256',
      'RS384',
      'RS512',
    ])
  })

  test('CLI-10 combinations of fields, with stored ones too', async () => {
    const bad: [Json, string][] = [
      [{ ...spa, redirect_uris: [] }, 'redirect_uris'],
      [{ ...machine, grant_types: ['authorization_code'] }, 'redirect_uris'],
      [{ ...spa, grant_types: ['authorization_code', 'client_credentials'] }, 'grant_types'],
      [{ ...spa, token_endpoint_auth_method: 'client_secret_basic' }, 'token_endpoint_auth_method'],
      [{ ...spa, token_endpoint_auth_method: 'client_secret_post' }, 'token_endpoint_auth_method'],
      [{ ...machine, token_endpoint_auth_method: 'none' }, 'token_endpoint_auth_method'],
    ]
    for (const [body, field] of bad)
      expect(refused(await app.admin('POST', '/clients', body))).toEqual([field])
    await create(app, '/clients', spa)
    await create(app, '/clients', machine)
    const changes: [string, Json, string][] = [
      ['spa', { redirect_uris: [] }, 'redirect_uris'],
      ['spa', { grant_types: ['authorization_code', 'client_credentials'] }, 'grant_types'],
      ['spa', { token_endpoint_auth_method: 'client_secret_basic' }, 'token_endpoint_auth_method'],
      ['machine', { token_endpoint_auth_method: 'none' }, 'token_endpoint_auth_method'],
      ['machine', { grant_types: ['authorization_code'] }, 'redirect_uris'],
    ]
    for (const [id, change, field] of changes)
      expect(refused(await app.admin('PUT', `/clients/${id}`, change))).toEqual([field])
  })

  test('CLI-14 a kind that contradicts type, grants or redirect URIs, with stored ones too', async () => {
    const web = { ...spa, type: 'confidential' }
    const cases: [Json, kinds: string[]][] = [
      [web, ['web']],
      [{ ...web, grant_types: ['authorization_code', 'client_credentials'] }, ['web']],
      [spa, ['spa', 'native']],
      [machine, ['service']],
      [{ ...machine, redirect_uris: ['https://app.example/cb'] }, []],
      [{ ...machine, grant_types: [] }, []],
    ]
    for (const [i, [client, fitting]] of cases.entries()) {
      const client_id = `app-${i}`
      await create(app, '/clients', { ...client, client_id })
      for (const kind of ['web', 'spa', 'native', 'service']) {
        const made = await app.admin('POST', '/clients', {
          ...client,
          kind,
          client_id: `${client_id}-${kind}`,
        })
        const changed = await app.admin('PUT', `/clients/${client_id}`, { kind })
        const isFit = fitting.includes(kind)
        expect([i, kind, made.status, changed.status]).toEqual([
          i,
          kind,
          ...(isFit ? [201, 200] : [422, 422]),
        ])
        if (isFit) expect([made.body.kind, changed.body.kind]).toEqual([kind, kind])
        else expect([...new Set([...refused(made), ...refused(changed)])]).toEqual(['kind'])
      }
    }
    const kinds = (await listAll(app, '/clients')).map(({ client_id, kind }: Json) => [client_id, kind])
    expect(Object.fromEntries(kinds)).toMatchObject({ 'app-0': 'web', 'app-3': 'service', 'app-5': null })
    expect((await app.admin('PUT', '/clients/app-0', { kind: null })).body.kind).toBeNull()
    expect(refused(await app.admin('PUT', '/clients/app-0', { kind: 'desktop' }))).toEqual(['kind'])
    await app.admin('PUT', '/clients/app-3', { kind: 'service' })
    const redirect_uris = ['https://app.example/cb']
    expect(refused(await app.admin('PUT', '/clients/app-3', { redirect_uris }))).toEqual(['kind'])
  })

  test('O-04 redirect URIs with fragment, wildcard, unsafe scheme, relative or plain http on a public host', async () => {
    const bad = [
      'https://app.example/cb#x',
      'https://*.example/cb',
      'https://app.example/*',
      'javascript:alert(1)',
      'data:text/html,x',
      'vbscript:x',
      'file:///etc/passwd',
      '/cb',
      'app.example/cb',
      '//app.example/cb',
      'http://app.example/cb',
      'http://127.0.0.1.evil.example/cb',
      'http://localhost.evil.example/cb',
      'https://user@app.example/cb',
      'https://app.example\\@evil.example',
      'https://app.example/\r\nLocation:x',
      'https://app.example/\0',
      ' https://app.example/cb',
      'https://',
      '',
      7,
    ]
    await create(app, '/clients', spa)
    for (const uri of bad)
      for (const field of ['redirect_uris', 'post_logout_redirect_uris']) {
        const body = { ...spa, client_id: 'other', [field]: ['https://app.example/ok', uri] }
        expect(refused(await app.admin('POST', '/clients', body))).toEqual([`${field}.1`])
        expect(refused(await app.admin('PUT', '/clients/spa', { [field]: [uri] }))).toEqual([`${field}.0`])
      }
    const good = [
      'https://app.example/cb?x=1',
      'http://localhost:3000/cb',
      'http://127.0.0.1/cb',
      'http://[::1]/cb',
      'com.example.app:/cb',
    ]
    const { body } = await app.admin('PUT', '/clients/spa', { redirect_uris: good })
    expect(body.redirect_uris).toEqual(good)
  })
})
