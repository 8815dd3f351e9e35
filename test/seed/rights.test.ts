import { expect, test } from 'bun:test'
import { captureMail } from '#src/mail/captured.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { parseSeed, readSeed } from '#src/seed/read.ts'
import type { rightsFields, SeedInput, SeedSection } from '#src/seed/schema.ts'
import { type Json, startApp } from '#test/support/app.ts'

/** Each field that gives rights has its default, if it has one. */
const plain: SeedInput = {
  organizations: [{ slug: 'default', settings: {} }],
  roles: [{ name: 'helper', permissions: [] }],
  users: [{ username: 'bob', email: 'bob@example.com' }],
  groups: [{ name: 'staff' }],
  clients: [
    {
      client_id: 'web',
      type: 'confidential',
      client_secret: 'a-secret-from-the-file',
      grant_types: ['client_credentials'],
      scopes: [],
    },
  ],
  apis: [{ identifier: 'https://orders.example/', name: 'Orders' }],
  identity_providers: [
    {
      alias: 'corp',
      name: 'Corp',
      type: 'oidc',
      issuer: 'https://corp.example',
      client_id: 'ours',
      client_secret: 'ours-there',
    },
  ],
  webhooks: [{ name: 'siem', url: 'https://siem.example/', events: ['user.created'] }],
}

/** For each section, the path of the object above, and another value of each field that gives rights. */
const changed: { [S in SeedSection]: [path: string, Record<(typeof rightsFields)[S][number], unknown>] } = {
  organizations: [
    '/organizations/default',
    {
      session_ttl: '365d',
      email_code: 'all',
      remember_browser_days: 30,
      self_deletion: true,
      registration: 'open',
      password_policy: { min_length: 1 },
      client_registration: 'open',
      client_metadata_documents: 'any',
      allowed_metadata_documents: ['https://agent.example/client.json'],
      login_domains: ['example.org'],
    },
  ],
  roles: ['/roles/{id}', { permissions: ['users:delete'] }],
  users: ['/users/{id}', { roles: ['admin', 'user'] }],
  groups: ['/groups/{id}', { roles: ['admin'], members: ['bob'] }],
  clients: [
    '/clients/web',
    {
      redirect_uris: ['https://web.example/callback'],
      web_origins: ['https://web.example'],
      grant_types: ['client_credentials', 'refresh_token'],
      scopes: ['users:read'],
      capabilities: ['cross_organization'],
      consent_required: false,
      access_token_typ: 'JWT',
      claims: { department: 'user.attributes.department' },
      allowed_roles: ['user'],
      allowed_groups: ['staff'],
    },
  ],
  apis: [
    '/apis/{id}',
    {
      scopes: [{ name: 'orders.read', texts: {}, role: null, claims: {} }],
      clients: [{ client_id: 'web', scopes: [] }],
      served_by: ['web'],
      open_to_dynamic_clients: true,
    },
  ],
  identity_providers: [
    '/identity-providers/{id}',
    {
      allow_registration: false,
      trust_email: true,
      default_roles: ['admin'],
      attribute_mapping: { email: 'upn' },
    },
  ],
  webhooks: ['/webhooks/{id}', { events: ['*'], all_organizations: true }],
}

test('MCD-09 a plan of an exported file shows a change of each field that gives rights, and an apply undoes it', async () => {
  const app = await startApp({}, { mail: captureMail() })
  await applySeed(app.context, readSeed(plain))
  const exported = await exportSeed(app.context, {})
  const file = parseSeed(renderSeed(exported), 'export.yaml')
  const bob = exported.users?.[0]?.id
  for (const [section, [path, fields]] of Object.entries(changed) as [SeedSection, [string, Json]][])
    for (const [field, value] of Object.entries(fields)) {
      const object = path.replace('{id}', String(exported[section]?.[0]?.id))
      const isSetting = section === 'organizations'
      const { status, body } =
        field === 'members'
          ? await app.admin('PUT', `${object}/members/${bob}`)
          : await app.admin('PUT', object, isSetting ? { settings: { [field]: value } } : { [field]: value })
      expect([field, status, status < 300 || body]).toEqual([field, expect.any(Number), true])
      const change = [{ section, action: 'update', fields: [isSetting ? 'settings' : field] }]
      expect([field, await applySeed(app.context, file, { dry_run: true })]).toMatchObject([field, change])
      expect(await applySeed(app.context, file)).toMatchObject(change)
      expect(await exportSeed(app.context, {})).toEqual(exported)
    }
})

test('a plan of an exported file shows each rule that a password policy has no more', async () => {
  const app = await startApp()
  const set = (password_policy: Json) =>
    app.admin('PUT', '/organizations/default', { settings: { password_policy } })
  await set({ max_age_days: 365 })
  const exported = await exportSeed(app.context, {})
  const file = parseSeed(renderSeed(exported), 'export.yaml')
  expect(await applySeed(app.context, file)).toEqual([])
  for (const rule of [{ min_length: 1 }, { require_digit: false }, { refuse_common: false }]) {
    expect((await set(rule)).status).toBe(200)
    await app.events()
    const change = [{ action: 'update', section: 'organizations', name: 'default', fields: ['settings'] }]
    expect(await applySeed(app.context, file, { dry_run: true })).toMatchObject(change)
    expect(await app.events()).toEqual([])
    expect(await applySeed(app.context, file)).toMatchObject(change)
    expect(await app.events()).toMatchObject([{ type: 'organization.updated', target_id: 'org_default' }])
    expect(await exportSeed(app.context, {})).toEqual(exported)
  }
  const { body } = await app.admin('GET', '/organizations/default')
  expect(body.settings.password_policy).toEqual({ max_age_days: 365 })
})
