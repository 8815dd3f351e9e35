import { beforeEach, describe, expect, test } from 'bun:test'
import { Settings } from '#src/directory/organizations/schema.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { publishedIds } from '#src/protocol/oauth/published-documents.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

let app: TestApp
const acme = { name: 'Acme Inc.', slug: 'acme' }

beforeEach(async () => {
  app = await startApp()
  await app.admin('GET', '/roles')
  await app.events()
})

const event = (type: string, id: string, metadata: Record<string, unknown>, organization_id = id) => ({
  type,
  actor_id: 'gatehouse-admin',
  target_id: id,
  target_type: 'organization',
  organization_id,
  metadata,
})

const settings = async (reference: string, change: Json): Promise<Json> => {
  const { status, body } = await app.admin('PUT', `/organizations/${reference}`, { settings: change })
  expect(status).toBe(200)
  return body.settings
}

test('ORG-03 an organization is created with its defaults, read by id and slug, and recorded', async () => {
  const { status, body } = await app.admin('POST', '/organizations', acme)
  expect(status).toBe(201)
  expect(body).toEqual({
    id: expect.stringMatching(/^org_[0-9a-f-]{36}$/),
    ...acme,
    display_name: 'Acme Inc.',
    settings: {},
    created_at: '2026-01-15T12:00:00.000Z',
    updated_at: '2026-01-15T12:00:00.000Z',
  })
  expect((await app.admin('GET', `/organizations/${body.id}`)).body).toEqual(body)
  expect((await app.admin('GET', '/organizations/acme')).body).toEqual(body)
  expect(await app.events()).toEqual([event('organization.created', body.id, acme)])
})

test('ORG-01 a malformed organization is refused by field, and nothing is stored', async () => {
  const slugs = ['ab', 'x'.repeat(65), 'Acme', 'a_b', 'a b', '-ab', 'ab-', 'a.b', 'ä-b', '', 7, null]
  const bad: [object, string[]][] = [
    [{}, ['name', 'slug']],
    [{ ...acme, name: '' }, ['name']],
    [{ ...acme, display_name: '' }, ['display_name']],
    [{ ...acme, settings: null }, ['settings']],
    [{ ...acme, settings: [] }, ['settings']],
    [{ ...acme, id: 'org_x', user_count: 3 }, ['id', 'user_count']],
    ...slugs.map((slug): [object, string[]] => [{ ...acme, slug }, ['slug']]),
  ]
  for (const [body, fields] of bad)
    expect(refused(await app.admin('POST', '/organizations', body))).toEqual(fields)
  expect((await app.admin('GET', '/organizations')).body.pagination.total).toBe(1)
  expect(await app.events()).toEqual([])
})

test('M-11 slugs that look like a server path or an id are refused', async () => {
  const ids = ['org_default', '019bc186-de00-734a-b826-7e57c99aaa0c', 'usr_x', 'org_x']
  for (const slug of ['admin', 'api', 'oauth', 'saml', 'account', ...ids])
    expect(refused(await app.admin('POST', '/organizations', { ...acme, slug }))).toEqual(['slug'])
})

test('ORG-02 a slug is unique, and free again after its organization is deleted or renamed', async () => {
  const { id } = await create(app, '/organizations', acme)
  expect((await app.admin('POST', '/organizations', { name: 'Other', slug: 'acme' })).status).toBe(409)
  expect((await app.admin('POST', '/organizations', { name: 'Other', slug: 'default' })).status).toBe(409)
  await app.admin('PUT', `/organizations/${id}`, { slug: 'acme-2' })
  const other = await create(app, '/organizations', { name: 'Other', slug: 'acme' })
  expect((await app.admin('PUT', `/organizations/${other.id}`, { slug: 'acme-2' })).status).toBe(409)
  expect((await app.admin('GET', '/organizations/acme')).body.id).toBe(other.id)
  await app.admin('DELETE', '/organizations/acme-2')
  expect((await app.admin('PUT', `/organizations/${other.id}`, { slug: 'acme-2' })).status).toBe(200)
})

test('H-15 a tenant cannot take the slug for which private hosts are configured', async () => {
  app = await startApp({ outbound_allow: ['idp.internal:443', 'reserved=idp.internal:443'] })
  const { id } = await create(app, '/organizations', acme)
  const tenant = await callerOf(app, id, ['organizations:update'])
  await create(app, '/organizations', { name: 'Taken', slug: 'taken' })
  await app.events()
  const rename = (slug: string, token?: string) => app.admin('PUT', `/organizations/${id}`, { slug }, token)
  const refusedTo = async (slug: string) => {
    const { status, body } = await rename(slug, tenant)
    return [status, body.error_description]
  }
  // A reserved slug and a taken slug get the same answer, so the answer does not reveal the settings.
  const taken = [409, 'This slug is taken, or reserved by the operator.']
  expect([await refusedTo('reserved'), await refusedTo('taken')]).toEqual([taken, taken])
  expect((await app.admin('GET', `/organizations/${id}`)).body.slug).toBe('acme')
  expect(await app.events()).toEqual([])
  expect((await rename('acme-2', tenant)).status).toBe(200)
  expect((await rename('reserved')).status).toBe(200)
  // The tenant is allowed to send the reserved slug that its organization already has. A PUT that does not
  // change the slug is not checked.
  const change = { slug: 'reserved', display_name: 'ACME' }
  expect((await app.admin('PUT', '/organizations/reserved', change, tenant)).status).toBe(200)
})

describe('PUT', () => {
  test('ORG-04 changes only the given fields, by id or slug', async () => {
    const { body: before } = await app.admin('POST', '/organizations', acme)
    await app.events()
    app.clock.advance(1000)
    const { body } = await app.admin('PUT', '/organizations/acme', {
      display_name: 'ACME',
      name: 'Acme Ltd.',
    })
    expect(body).toEqual({
      ...before,
      display_name: 'ACME',
      name: 'Acme Ltd.',
      updated_at: '2026-01-15T12:00:01.000Z',
    })
    await app.admin('PUT', `/organizations/${before.id}`, { settings: { theme: 'ember' } })
    expect((await app.admin('GET', '/organizations/acme')).body).toEqual({
      ...body,
      settings: { theme: 'ember' },
    })
    expect(await app.events()).toEqual([
      event('organization.updated', before.id, { fields: ['name', 'display_name'] }),
      event('organization.updated', before.id, { fields: ['settings'], settings: { theme: 'ember' } }),
    ])
  })

  test('without a change records nothing', async () => {
    const { body } = await app.admin('POST', '/organizations', {
      ...acme,
      settings: { password_policy: { min_length: 12 } },
    })
    await app.events()
    app.clock.advance(1000)
    const [listed] = (await app.admin('GET', '/organizations?search=acme')).body.data
    const unchanged = [
      {},
      body,
      listed,
      { settings: {} },
      { settings: { theme: null, password_policy: { min_length: 12, require_digit: null } } },
    ]
    for (const change of unchanged)
      expect(await app.admin('PUT', '/organizations/acme', change)).toMatchObject({ status: 200, body })
    expect(await app.events()).toEqual([])
  })

  test('refuses immutable fields', async () => {
    const { body } = await app.admin('POST', '/organizations', acme)
    for (const [field, value] of Object.entries({
      id: 'org_x',
      user_count: 9,
      created_at: '',
      updated_at: '',
    }))
      expect(refused(await app.admin('PUT', '/organizations/acme', { [field]: value }))).toEqual([field])
    expect((await app.admin('GET', '/organizations/acme')).body).toEqual(body)
  })
})

describe('settings', () => {
  test('ORG-06 merge by key; null resets a key', async () => {
    await create(app, '/organizations', {
      ...acme,
      settings: { theme: 'ember', password_policy: { min_length: 12, require_digit: false } },
    })
    expect(await settings('acme', { session_ttl: '12h', password_policy: { require_digit: null } })).toEqual({
      theme: 'ember',
      session_ttl: '12h',
      password_policy: { min_length: 12 },
    })
    expect(await settings('acme', { theme: null, password_policy: { max_age_days: 90 } })).toEqual({
      session_ttl: '12h',
      password_policy: { min_length: 12, max_age_days: 90 },
    })
    expect(await settings('acme', { password_policy: null })).toEqual({ session_ttl: '12h' })
    expect(await settings('acme', { password_policy: { min_length: null } })).toEqual({ session_ttl: '12h' })
  })

  test('ORG-06 a new organization has the default of each setting that is null', async () => {
    const nulls = Object.fromEntries(Object.keys(Settings.shape).map(name => [name, null]))
    const { status, body } = await app.admin('POST', '/organizations', { ...acme, settings: nulls })
    expect([status, body.settings]).toEqual([201, {}])
    expect((await app.admin('GET', '/organizations/acme')).body).toEqual(body)
    expect(await app.events()).toEqual([event('organization.created', body.id, acme)])
  })

  test('ORG-07 refuse out-of-range values and unknown names', async () => {
    const { body } = await app.admin('POST', '/organizations', acme)
    const bad: [Json, string][] = [
      ...['4m', '366d', '53w', '0h', '1.5h', '12', 'h', '12s', ' 12h', '-1d', '1y', 12].map(
        (value): [Json, string] => [{ session_ttl: value }, 'session_ttl'],
      ),
      ...['*.example.com', 'example', '@example.com', 'exa mple.com', 'example.com.', '-a.com', ''].map(
        (value): [Json, string] => [{ allowed_domains: [value] }, 'allowed_domains.0'],
      ),
      [{ allowed_domains: 'example.com' }, 'allowed_domains'],
      ...[
        '*.example.com',
        'example',
        'example.com:443',
        'user@example.com',
        'https://example.com',
        '10.0.0.1',
      ].map((value): [Json, string] => [{ login_domains: [value] }, 'login_domains.0']),
      [{ login_domains: Array.from({ length: 101 }, (_, n) => `d${n}.example`) }, 'login_domains'],
      [{ mfa_required: 'no' }, 'mfa_required'],
      [{ self_deletion: 1 }, 'self_deletion'],
      [{ theme: 7 }, 'theme'],
      [{ logo: 'x' }, 'logo'],
      [{ password_policy: [] }, 'password_policy'],
      [{ password_policy: { min_length: 0 } }, 'password_policy.min_length'],
      [{ password_policy: { min_length: 8.5 } }, 'password_policy.min_length'],
      [{ password_policy: { require_digit: 1 } }, 'password_policy.require_digit'],
      [{ password_policy: { max_age_days: -1 } }, 'password_policy.max_age_days'],
      [{ password_policy: { entropy: 1 } }, 'password_policy.entropy'],
    ]
    for (const [value, field] of bad)
      expect(refused(await app.admin('PUT', '/organizations/acme', { settings: value }))).toEqual([
        `settings.${field}`,
      ])
    expect((await app.admin('GET', '/organizations/acme')).body).toEqual(body)
    for (const session_ttl of ['5m', '365d', '52w', '8760h'])
      expect(await settings('acme', { session_ttl, mfa_required: true })).toEqual({
        session_ttl,
        mfa_required: true,
      })
  })

  test('are returned as set; the server reads them with defaults', async () => {
    const { id } = await create(app, '/organizations', acme)
    const read = async () => {
      const organization = await findOrganization(app.context.store, id as OrganizationId)
      return organization && settingsOf(organization)
    }
    const password_policy = {
      min_length: 8,
      require_uppercase: true,
      require_lowercase: true,
      require_digit: true,
      require_special: true,
      refuse_common: true,
      max_age_days: undefined,
    }
    expect(await read()).toEqual({
      theme: undefined,
      session_ttl: undefined,
      mfa_required: false,
      passkey_required: false,
      email_code: 'off',
      remember_browser_days: undefined,
      self_deletion: false,
      logo: undefined,
      logo_dark: undefined,
      accent_color: undefined,
      custom_css: undefined,
      terms: undefined,
      terms_url: undefined,
      privacy_url: undefined,
      support_url: undefined,
      allowed_domains: [],
      registration: 'off',
      step_up: undefined,
      console_acr: undefined,
      password_policy,
      user_attributes: [],
      client_registration: 'off',
      client_metadata_documents: 'off',
      allowed_metadata_documents: publishedIds,
      blocked_clients: [],
    })
    const given = {
      session_ttl: '2d',
      allowed_domains: ['Example.COM'],
      password_policy: { require_special: false },
    }
    expect(await settings('acme', given)).toEqual(given)
    expect(await read()).toMatchObject({
      session_ttl: 172_800_000,
      allowed_domains: ['example.com'],
      password_policy: { ...password_policy, require_special: false },
    })
  })
})

test('ORG-09 the default organization cannot be deleted; an unknown organization is 404', async () => {
  for (const reference of ['org_default', 'default'])
    expect((await app.admin('DELETE', `/organizations/${reference}`)).body).toMatchObject({
      error: 'conflict',
    })
  for (const method of ['GET', 'PUT', 'DELETE'])
    for (const reference of ['nowhere', 'org_nowhere'])
      expect(
        await app.admin(method, `/organizations/${reference}`, method === 'PUT' ? {} : undefined),
      ).toMatchObject({
        status: 404,
        body: { error: 'not_found' },
      })
})

test('M-10 a deleted organization is hidden from every read at once, and a successor of its slug inherits nothing', async () => {
  const { id } = await create(app, '/organizations', acme)
  const token = await callerOf(app, id, ['roles:read'])
  const role = await create(app, '/roles', { name: 'editor', permissions: [], organization_id: id })
  const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'], organization_id: id })
  const user = await addUser(app, 'alice', { organization_id: id, roles: ['editor'] })
  await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
  const client = (await app.admin('GET', `/clients?organization_id=${id}`)).body.data[0].client_id
  await app.events()

  expect((await app.admin('DELETE', '/organizations/acme')).status).toBe(204)
  expect(await app.events()).toEqual([event('organization.deleted', id, acme, 'org_default')])
  const paths = [
    '/organizations/acme',
    `/organizations/${id}`,
    `/roles/${role.id}`,
    `/groups/${group.id}`,
    `/groups/${group.id}/members`,
    `/clients/${client}`,
    `/users/${user.id}`,
  ]
  for (const path of paths) expect((await app.admin('GET', path)).status).toBe(404)
  for (const list of ['roles', 'groups', 'clients', 'users', 'sessions', 'events']) {
    const { body } = await app.admin('GET', `/${list}?organization_id=${id}`)
    expect([list, body.data, body.pagination.total]).toEqual([list, [], 0])
    const all = await listAll(app, `/${list}`)
    expect(all.filter(row => row.organization_id === id)).toEqual([])
    expect([list, (await app.admin('GET', `/${list}`)).body.pagination.total]).toEqual([list, all.length])
  }
  expect((await app.admin('GET', '/roles', undefined, token)).status).toBe(401)
  expect(await app.tokenOf(client, 'any').catch(() => 'refused')).toBe('refused')
  expect((await app.admin('DELETE', '/organizations/acme')).status).toBe(404)

  const next = await create(app, '/organizations', acme)
  expect(next.id).not.toBe(id)
  expect((await app.admin('GET', '/organizations?search=acme')).body.data).toMatchObject([{ user_count: 0 }])
  expect((await app.admin('GET', `/users?organization_id=${next.id}`)).body.data).toEqual([])
  expect((await app.admin('GET', '/roles', undefined, token)).status).toBe(401)
  expect((await addUser(app, 'alice', { organization_id: next.id })).id).not.toBe(user.id)
})

describe('the list', () => {
  test('ORG-05 is in order of creation, page by page, with exact totals and user counts', async () => {
    for (const slug of ['ccc', 'aaa', 'bbb']) {
      app.clock.advance(1)
      await create(app, '/organizations', { name: slug.toUpperCase(), slug })
    }
    const { id } = (await app.admin('GET', '/organizations/aaa')).body
    await addUser(app, 'alice', { organization_id: id })
    const all = await listAll(app, '/organizations?order=asc')
    expect(all.map(({ slug, user_count }) => [slug, user_count])).toEqual([
      ['default', 0],
      ['ccc', 0],
      ['aaa', 1],
      ['bbb', 0],
    ])
    expect((await listAll(app, '/organizations')).map(({ slug }) => slug)).toEqual([
      'bbb',
      'aaa',
      'ccc',
      'default',
    ])
    expect((await app.admin('GET', '/organizations?limit=1')).body.pagination).toMatchObject({
      total: 4,
      has_more: true,
    })
  })

  test('ORG-08 searches name, slug and display name without regard to case', async () => {
    await create(app, '/organizations', { name: 'Zürich 100%', slug: 'swiss', display_name: 'Bank_X' })
    await create(app, '/organizations', acme)
    const found = async (search: string) => {
      const { body } = await app.admin('GET', `/organizations?search=${encodeURIComponent(search)}`)
      expect(body.pagination.total).toBe(body.data.length)
      return body.data.map(({ slug }: Json) => slug)
    }
    for (const term of ['ZÜRICH', 'wis', 'bank_x', '100%', 'zürich 1'])
      expect(await found(term)).toEqual(['swiss'])
    for (const term of ['%', '_', 'nk_', "'", '"']) expect((await found(term)).length).toBeLessThan(2)
    expect(await found('nothing')).toEqual([])
    expect((await found('')).sort()).toEqual(['acme', 'default', 'swiss'])
    await app.admin('PUT', '/organizations/swiss', { display_name: 'Post' })
    expect([await found('bank'), await found('post')]).toEqual([[], ['swiss']])
  })

  test('refuses unknown parameters', async () => {
    for (const name of ['sort', 'organization_id', 'slug'])
      expect(refused(await app.admin('GET', `/organizations?${name}=x`))).toEqual([name])
  })
})
