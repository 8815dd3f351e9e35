import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization } from '#test/support/people.ts'

let app: TestApp
let acme: Json
let blue: Json

beforeEach(async () => {
  app = await startApp()
  acme = await addOrganization(app, 'acme', {
    settings: { login_domains: ['Acme.EXAMPLE', 'bücher.example'] },
  })
  blue = await addOrganization(app, 'blue')
  await app.events()
})

const put = (organization: Json, settings: Json, token?: string) =>
  app.admin('PUT', `/organizations/${organization.id}`, { settings }, token)
const settingsOf = async (organization: Json) =>
  (await app.admin('GET', `/organizations/${organization.id}`)).body.settings
const rows = () =>
  app.context.store.read(async q => {
    const { login_domains: t } = q.tables
    const found = await q.select().from(t).orderBy(t.domain)
    return found.map(({ domain, organization_id }) => [domain, organization_id])
  })
const own = () => [
  ['acme.example', acme.id],
  ['xn--bcher-kva.example', acme.id],
]

describe('login_domains', () => {
  test('ORG-10 are stored in lower case and IDNA form, and follow each change', async () => {
    expect(acme.settings).toEqual({ login_domains: ['acme.example', 'xn--bcher-kva.example'] })
    expect(await rows()).toEqual(own())
    expect((await put(acme, { login_domains: ['acme.example', 'ACME.example', 'new.example'] })).status).toBe(
      200,
    )
    expect(await settingsOf(acme)).toEqual({ login_domains: ['acme.example', 'new.example'] })
    expect(await rows()).toEqual([
      ['acme.example', acme.id],
      ['new.example', acme.id],
    ])
    expect((await put(acme, { login_domains: null })).status).toBe(200)
    expect([await settingsOf(acme), await rows()]).toEqual([{}, []])
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.settings])).toEqual([
      ['organization.updated', { login_domains: ['acme.example', 'new.example'] }],
      ['organization.updated', {}],
    ])
  })

  test('ORG-10 belong to one organization, until it drops them or is deleted', async () => {
    const taken = { error: 'conflict', error_description: 'A login domain belongs to another organization.' }
    const login_domains = ['blue.example', 'ACME.example']
    const body = { name: 'Green', slug: 'green', settings: { login_domains } }
    expect(await put(blue, { login_domains })).toMatchObject({ status: 409, body: taken })
    expect(await app.admin('POST', '/organizations', body)).toMatchObject({ status: 409, body: taken })
    expect([await settingsOf(blue), await rows(), await app.events()]).toEqual([{}, own(), []])
    expect((await app.admin('GET', '/organizations/green')).status).toBe(404)

    await put(acme, { login_domains: ['xn--bcher-kva.example'] })
    expect((await put(blue, { login_domains })).status).toBe(200)
    expect((await app.admin('DELETE', `/organizations/${blue.id}`)).status).toBe(204)
    expect(await rows()).toEqual([['xn--bcher-kva.example', acme.id]])
    expect((await put(acme, { login_domains })).status).toBe(200)
  })

  test('ORG-11 are changed by callers of the default organization alone', async () => {
    const tenant = await callerOf(app, acme.id, ['organizations:read', 'organizations:update'])
    await app.events()
    for (const login_domains of [
      ['acme.example', 'xn--bcher-kva.example', 'mail.example'],
      ['acme.example'],
      [],
      null,
    ])
      expect(await put(acme, { login_domains }, tenant)).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      })
    expect([await settingsOf(acme), await rows(), await app.events()]).toEqual([acme.settings, own(), []])
    // A caller is allowed to send back the settings that it has read.
    const { body } = await app.admin('GET', '/organizations/acme', undefined, tenant)
    const change = { ...body.settings, session_ttl: '12h' }
    expect((await put(acme, change, tenant)).body.settings).toEqual(change)
    expect(await rows()).toEqual(own())
  })
})
