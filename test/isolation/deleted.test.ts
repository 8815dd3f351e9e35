import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { purge } from '#src/operations/purge.ts'
import { sweep } from '#src/operations/sweep.ts'
import { type Json, START, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  REDIRECT,
  VERIFIER,
} from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const token = async (fields: Record<string, string>) => {
  const answer = await app.call('/oauth/token', { method: 'POST', body: new URLSearchParams(fields) })
  return { status: answer.status, body: (await answer.json()) as Json }
}

const exchange = (client: Json, code: string) =>
  token({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    client_id: client.client_id,
    client_secret: client.client_secret,
    code_verifier: VERIFIER,
  })

const userinfo = async (access_token: string) =>
  (await app.call('/oauth/userinfo', { headers: { authorization: `Bearer ${access_token}` } })).status

/** Counts an organization's rows in each table that has an `organization_id`. */
const left = (organization_id: string) =>
  app.context.store.read(async q => {
    const counts: Record<string, number> = {}
    for (const [name, table] of Object.entries(q.tables)) {
      const rows: Json[] = await q.select().from(table)
      const of = rows.filter(row => row.organization_id === organization_id)
      if (of.length > 0) counts[name] = of.length
    }
    return counts
  })

describe('M-10 after an organization is deleted', () => {
  test('none of its logins, codes, tokens or sessions works, and a successor of the same slug inherits none', async () => {
    const build = async () => {
      const { id } = await addOrganization(app, 'acme')
      const client = await addClient(app, 'shop', { organization_id: id })
      await addUser(app, 'alice', { organization_id: id })
      return { id, client }
    }
    const old = await build()
    const browser = openBrowser(app)
    const { code = '' } = await logInTo(browser, 'shop', 'alice')
    const { body: tokens } = await exchange(old.client, code)
    const { location: again } = await browser.get(authorizeUrl('shop'))
    const pending = new URL(again ?? '').searchParams.get('code') ?? ''
    expect([await userinfo(tokens.access_token), pending === '']).toEqual([200, false])
    const job = await addClient(app, 'job', {
      organization_id: old.id,
      grant_types: ['client_credentials'],
      redirect_uris: [],
    })
    const own = await app.tokenOf('job', job.client_secret)
    // The token of a client belongs to no user, so the answer to a valid one is 403.
    expect(await userinfo(own)).toBe(403)

    await app.admin('DELETE', '/organizations/acme')
    const next = await build()
    for (const access_token of [tokens.access_token, own]) expect(await userinfo(access_token)).toBe(401)
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id: 'shop' }
    for (const { client_secret } of [old.client, next.client])
      expect((await token({ ...refresh, client_secret })).status).toBeGreaterThanOrEqual(400)
    for (const client of [old.client, next.client])
      expect((await exchange(client, pending)).status).not.toBe(200)
    const page = await browser.get(authorizeUrl('shop'))
    expect(page.location).not.toStartWith(REDIRECT)
    const silent = await browser.get(authorizeUrl('shop', { prompt: 'none' }))
    expect(new URL(silent.location ?? '').searchParams.get('error')).toBe('login_required')
    expect((await app.admin('GET', `/sessions?organization_id=${next.id}`)).body.data).toEqual([])
  })

  test('API-17 its rows are removed in batches, and those of others stay', async () => {
    const { id } = await addOrganization(app, 'acme')
    const role = await create(app, '/roles', { name: 'editor', permissions: [], organization_id: id })
    const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'], organization_id: id })
    const user = await addUser(app, 'alice', { organization_id: id, roles: ['editor'] })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    const client = await addClient(app, 'shop', { organization_id: id, capabilities: ['cross_organization'] })
    await logInTo(openBrowser(app), 'shop', 'alice')
    const other = await addUser(app, 'bob')
    await app.context.store.write(async tx => {
      await tx.insert(tx.tables.sessions).values({
        id: newId('sess', START),
        user_id: other.id,
        client_id: client.client_id,
        organization_id: 'org_default',
        login_id: newId('login', START),
        scope: 'openid',
        ip_address: '',
        user_agent: '',
        started_at: START,
        last_active_at: START,
        expires_at: START + 3_600_000,
        due_at: START + 3_600_000,
      })
      await tx.insert(tx.tables.consents).values({
        user_id: other.id,
        client_id: client.client_id,
        organization_id: 'org_default',
        scopes: ['openid'],
        created_at: START,
        updated_at: START,
      })
    })
    const home = await left('org_default')

    await app.admin('DELETE', `/organizations/${id}`)
    await purge(app.context)
    expect(await left(id)).toEqual({})
    const { events = 0, consents = 0, ...rest } = home
    expect(await left('org_default')).toEqual({ ...rest, events: events + 1 })
    expect(consents).toBe(1)
    expect((await app.admin('GET', '/sessions')).body.data).toEqual([])
    const { pairs, purges } = await app.context.store.read(async q => ({
      pairs: [
        ...(await q.select().from(q.tables.user_roles)).filter(row => row.role_id === role.id),
        ...(await q.select().from(q.tables.group_roles)),
        ...(await q.select().from(q.tables.group_members)),
      ],
      purges: await q.select().from(q.tables.purges),
    }))
    expect([pairs, purges]).toEqual([[], []])
  })
})

test('M-10 sessions of a deleted organization that expire before they are removed record nothing', async () => {
  const { id } = await addOrganization(app, 'acme')
  const client = await addClient(app, 'shop', { organization_id: id })
  await grantTokens(app, client, await addUser(app, 'alice', { organization_id: id }))
  await app.admin('DELETE', `/organizations/${id}`)
  await app.events()
  app.clock.advance(31 * DAY)
  await sweep(app.context)
  expect(await app.events()).toEqual([])
})

test('rows joining users to a deleted role or group are removed in batches, and are not counted before', async () => {
  const role = await create(app, '/roles', { name: 'editor', permissions: [] })
  const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  for (const name of ['alice', 'bob', 'carol']) {
    const user = await addUser(app, name, { roles: ['user', 'editor'] })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
  }
  await app.admin('DELETE', `/roles/${role.id}`)
  await app.admin('DELETE', `/groups/${group.id}`)
  const pairs = () =>
    app.context.store.read(async q => ({
      roles: (await q.select().from(q.tables.user_roles)).length,
      members: (await q.select().from(q.tables.group_members)).length,
      purges: (await q.select().from(q.tables.purges)).length,
    }))
  expect(await pairs()).toEqual({ roles: 6, members: 3, purges: 2 })
  expect((await app.admin('GET', '/users?role=editor')).body.pagination.total).toBe(0)
  const again = await create(app, '/roles', { name: 'editor', permissions: [] })
  expect([again.user_count, (await app.admin('GET', '/users?role=editor')).body.data]).toEqual([0, []])
  await purge(app.context)
  expect(await pairs()).toEqual({ roles: 3, members: 0, purges: 0 })
  expect((await app.admin('GET', '/roles/role_user')).body.user_count).toBe(3)
})

test('one of two parallel creations with the same name gets a conflict', async () => {
  const bodies: Record<string, Json> = {
    '/organizations': { name: 'Acme', slug: 'acme' },
    '/roles': { name: 'editor', permissions: [] },
    '/groups': { name: 'Staff' },
    '/clients': { client_id: 'app', name: 'App', type: 'confidential', grant_types: [], scopes: [] },
  }
  for (const [path, body] of Object.entries(bodies)) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => app.admin('POST', path, body)))
    expect(answers.map(answer => answer.status).sort()).toEqual([201, ...Array(7).fill(409)])
  }
})
