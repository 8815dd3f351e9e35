import { beforeEach, expect, test } from 'bun:test'
import { insertClient, readClient } from '#src/directory/clients/store.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create, refused } from '#test/support/callers.ts'
import {
  addClient,
  addUser,
  authorizeUrl,
  logInTo,
  REDIRECT,
  signIn,
  VERIFIER,
} from '#test/support/people.ts'
import { basic, bearer, get, grantTokens, post } from '#test/support/tokens.ts'

let app: TestApp
let ada: Json
let group: Json
let client: Json

beforeEach(async () => {
  app = await startApp()
  ada = await addUser(app, 'ada')
  await create(app, '/roles', { name: 'editor', permissions: [] })
  await create(app, '/roles', { name: 'inherited', permissions: [] })
  group = await create(app, '/groups', { name: 'writers', roles: ['inherited'] })
  client = await addClient(app, 'web', { capabilities: ['token_introspection'] })
})

const limit = (change: Json) => app.admin('PUT', '/clients/web', change)
const join = () => app.admin('PUT', `/groups/${group.id}/members/${ada.id}`)
const EXCLUDED = 'You can’t use The web'

test('ADM-01 one role, direct or inherited, or one group is enough', async () => {
  const enters = async () => {
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get(authorizeUrl('web')), 'ada')
    return page.heading !== EXCLUDED && 'code' in answerOf(page)
  }
  expect(await enters()).toBe(true)
  await limit({ allowed_roles: ['editor', 'inherited'], allowed_groups: ['writers'] })
  expect(await enters()).toBe(false)
  await app.admin('PUT', `/users/${ada.id}`, { roles: ['user', 'editor'] })
  expect(await enters()).toBe(true)
  await app.admin('PUT', `/users/${ada.id}`, { roles: ['user'] })
  await join()
  await limit({ allowed_groups: [] })
  expect(await enters()).toBe(true)
  await limit({ allowed_roles: [], allowed_groups: ['writers'] })
  expect(await enters()).toBe(true)
  await create(app, '/groups', { name: 'others' })
  await limit({ allowed_groups: ['others'] })
  expect(await enters()).toBe(false)
})

test('ADM-05 clients follow the name of a group, and a later group with the old name opens none', async () => {
  const other = await create(app, '/organizations', { name: 'Acme', slug: 'acme' })
  const groups = ['a "b"', 'writers', 'authors']
  await create(app, '/groups', { name: 'a "b"' })
  const dropped = await create(app, '/groups', { name: 'authors' })
  await limit({ allowed_groups: groups })
  await app.admin('DELETE', `/groups/${dropped.id}`)
  await addClient(app, 'everywhere', { capabilities: ['cross_organization'], allowed_groups: ['writers'] })
  await addClient(app, 'similar', { capabilities: ['cross_organization'], allowed_groups: ['x"a \\ "c"'] })
  await app.admin('PUT', '/clients/similar', { capabilities: [] })
  await create(app, '/groups', { name: 'writers', organization_id: other.id })
  await addClient(app, 'theirs', { organization_id: other.id, allowed_groups: ['writers'] })
  await join()
  app.clock.advance(1000)
  await app.events()
  const renamed = await app.admin('PUT', `/groups/${group.id}`, { name: 'authors' })
  expect(renamed.status).toBe(200)
  expect((await app.events()).map(({ type, target_id, metadata }) => [type, target_id, metadata])).toEqual([
    ['client.updated', 'web', { fields: ['allowed_groups'] }],
    ['group.updated', group.id, { name: 'authors', fields: ['name'] }],
  ])
  const namesOf = async (id: string) => (await app.admin('GET', `/clients/${id}`)).body.allowed_groups
  expect(await namesOf('web')).toEqual(['a "b"', 'authors'])
  expect((await app.admin('GET', '/clients/web')).body.updated_at).toBe(renamed.body.updated_at)
  expect(await Promise.all(['everywhere', 'similar', 'theirs'].map(namesOf))).toEqual([
    ['writers'],
    ['x"a \\ "c"'],
    ['writers'],
  ])
  const browser = openBrowser(app)
  expect(answerOf(await signIn(browser, await browser.get(authorizeUrl('web')), 'ada'))).toHaveProperty(
    'code',
  )
  const bob = await addUser(app, 'bob')
  const later = await create(app, '/groups', { name: 'writers' })
  await app.admin('PUT', `/groups/${later.id}/members/${bob.id}`)
  const another = openBrowser(app)
  const page = await signIn(another, await another.get(authorizeUrl('web')), 'bob')
  expect(page.heading).toBe(EXCLUDED)
  await app.admin('PUT', `/groups/${group.id}`, { name: 'a \\ "c"' })
  expect(await namesOf('web')).toEqual(['a "b"', 'a \\ "c"'])
  await app.events()
  await app.admin('PUT', `/groups/${group.id}`, { name: 'staff' })
  expect((await app.events()).map(({ target_id }) => target_id)).toEqual(['web', group.id])
  expect(await namesOf('web')).toEqual(['a "b"', 'staff'])
})

test('ADM-05 a name in more than 100 clients cannot be changed', async () => {
  const comma = await create(app, '/groups', { name: ',' })
  await create(app, '/groups', { name: 'others' })
  await limit({ allowed_groups: ['writers', 'others'] })
  const stored = await app.context.store.read(q => readClient(q, 'web'))
  if (!stored) throw new Error('The client is not stored.')
  await app.context.store.write(async tx => {
    for (let i = 0; i < 100; i++) await insertClient(tx, { ...stored, client_id: `web-${i}` })
  })
  await app.events()
  const rename = () => app.admin('PUT', `/groups/${group.id}`, { name: 'authors' })
  expect(await rename()).toMatchObject({ status: 409, body: { error: 'conflict' } })
  expect((await app.admin('GET', `/groups/${group.id}`)).body.name).toBe('writers')
  expect(await app.events()).toEqual([])
  // The name of this group is a comma. The stored lists have a comma between the names of two other groups,
  // but no client names this group.
  expect((await app.admin('PUT', `/groups/${comma.id}`, { name: 'comma' })).status).toBe(200)
  expect((await app.events()).map(({ target_id }) => target_id)).toEqual([comma.id])
  await app.admin('PUT', '/clients/web-7', { allowed_groups: [] })
  await app.events()
  expect((await rename()).status).toBe(200)
  expect((await app.events()).length).toBe(101)
})

test('ADM-02 the page says whom to ask, and leads to access_denied or another account', async () => {
  await limit({ allowed_groups: ['writers'] })
  await app.admin('PUT', '/organizations/org_default', {
    settings: { support_url: 'mailto:help@example.com' },
  })
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl('web')), 'ada')
  expect([page.status, page.heading]).toEqual([403, EXCLUDED])
  expect(page.html).toContain('mailto:help@example.com')
  expect(page.forms.map(({ action }) => action)).toEqual(['/oauth/excluded', '/oauth/other-account'])
  const silent = await browser.get(authorizeUrl('web', { prompt: 'none' }))
  expect(answerOf(silent)).toMatchObject({ error: 'access_denied', state: 'xyz' })
  const denied = await browser.submit(page, {}, '/oauth/excluded')
  expect(answerOf(denied)).toMatchObject({ error: 'access_denied', state: 'xyz' })
  expect((await browser.submit(page, {}, '/oauth/excluded')).status).toBe(400)
  const again = await browser.follow(await browser.get(authorizeUrl('web')))
  await join()
  const admitted = await browser.follow(await browser.submit(again, {}, '/oauth/excluded'))
  expect(answerOf(admitted)).toHaveProperty('code')
})

test('ADM-03 a code, a refresh token and tokens of a person who is no longer admitted are refused', async () => {
  const { access_token, refresh_token } = await grantTokens(app, client, ada, { scope: 'openid' })
  const code = (await logInTo(openBrowser(app), 'web', 'ada')).code
  const headers = basic(client.client_id, client.client_secret)
  const active = async (token: string) =>
    (await post(app, '/oauth/introspect', { token }, { headers })).body.active
  const refresh = () => post(app, '/oauth/token', { grant_type: 'refresh_token', refresh_token }, { headers })
  expect([await active(access_token), await active(refresh_token)]).toEqual([true, true])
  await limit({ allowed_roles: ['editor'] })
  expect([await active(access_token), await active(refresh_token)]).toEqual([false, false])
  expect((await get(app, '/oauth/userinfo', { headers: bearer(access_token) })).status).toBe(401)
  expect(await refresh()).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  const form = {
    ...{ grant_type: 'authorization_code', code, redirect_uri: 'https://app.example/callback' },
    code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  }
  expect(await post(app, '/oauth/token', form, { headers })).toMatchObject({
    body: { error: 'invalid_grant' },
  })
  await limit({ allowed_roles: [] })
  expect([await active(access_token), (await refresh()).status]).toEqual([true, 200])
})

test('ADM-01 lists of names are validated', async () => {
  for (const field of ['allowed_roles', 'allowed_groups'])
    for (const wrong of [
      'x',
      [1],
      [''],
      ['a\nb'],
      ['x'.repeat(129)],
      Array.from({ length: 101 }, (_, i) => `r${i}`),
    ])
      expect(refused(await limit({ [field]: wrong }))[0]).toStartWith(field)
})

test('ADM-04 a name that the organization lacks is refused, and a name that it has lost may stay', async () => {
  for (const [field, code] of [
    ['allowed_roles', 'unknown_role'],
    ['allowed_groups', 'unknown_group'],
  ]) {
    const { status, body } = await limit({ [field ?? '']: ['writers', 'inherited', 'nobody'] })
    const named = body.details.map((detail: Json) => [detail.field, detail.code])
    expect([status, new Set(named.flat())]).toEqual([422, new Set([field, code])])
  }
  expect((await limit({ allowed_roles: ['editor'] })).status).toBe(200)
  const { body } = await app.admin('GET', '/roles?limit=100')
  const { id } = body.data.find(({ name }: Json) => name === 'editor')
  expect((await app.admin('DELETE', `/roles/${id}`)).status).toBe(204)
  expect((await limit({ allowed_roles: ['editor'], name: 'Renamed' })).status).toBe(200)
  expect(refused(await limit({ allowed_roles: ['editor', 'gone'] }))).toEqual(['allowed_roles'])
})

test('ADM-03 the second use of a code ends its session, also for a person who is no longer admitted', async () => {
  const headers = basic(client.client_id, client.client_secret)
  const { code } = await logInTo(openBrowser(app), 'web', 'ada')
  const form = {
    ...{ grant_type: 'authorization_code', code, redirect_uri: REDIRECT },
    code_verifier: VERIFIER,
  }
  const first = await post(app, '/oauth/token', form, { headers })
  expect(first.status).toBe(200)
  await limit({ allowed_roles: ['editor'] })
  await app.events()
  expect((await post(app, '/oauth/token', form, { headers })).status).toBe(400)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata.reason])).toEqual([
    ['session.revoked', 'code_replayed'],
  ])
})
