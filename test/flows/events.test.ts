import { describe, expect, test } from 'bun:test'
import { eventTypes } from '#src/audit/types.ts'
import { DAY } from '#src/lib/duration.ts'
import { purge } from '#src/operations/purge.ts'
import { sweep } from '#src/operations/sweep.ts'
import { type Json, type RecordedEvent, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'
import { addCode, claimsOf, grantTokens, post, redeem, refresh, secretOf } from '#test/support/tokens.ts'

const app = await startApp()
await app.admin('GET', '/users')
const caused = new Set<string>()

/** Returns each event that an operation records, as type, actor and target. Tests compare the whole list. */
const recorded = async (operation: () => Promise<unknown>): Promise<string[]> => {
  await app.events()
  await operation()
  const events = await app.events()
  for (const { type } of events) caused.add(type)
  return events.map(described)
}
const described = ({ type, actor_id, target_type, target_id }: RecordedEvent) =>
  `${type} by ${actor_id ?? 'nobody'} of ${target_type} ${target_id}`.replace(/sess_[\w-]+/g, 'sess_')

const by = (type: string, target_id: string, actor: string | null = 'gatehouse-admin') => {
  const target_type = type.startsWith('token') || type.startsWith('session') ? 'session' : type.split('.')[0]
  return `${type} by ${actor ?? 'nobody'} of ${target_type} ${target_id}`
}

/** Each resource: path, body of the POST, change of the PUT, and event prefix. */
const resources: [string, Json, Json, string][] = [
  [
    '/users',
    { username: 'ann', email: 'ann@example.com', first_name: '', last_name: '', password: PASSWORD },
    { first_name: 'Ann' },
    'user',
  ],
  ['/organizations', { name: 'Acme', slug: 'acme' }, { display_name: 'ACME' }, 'organization'],
  ['/roles', { name: 'editor', permissions: [] }, { permissions: ['users:read'] }, 'role'],
  ['/groups', { name: 'Staff' }, { description: 'All' }, 'group'],
  ['/webhooks', { name: 'W', url: 'https://w.example', events: ['*'] }, { enabled: false }, 'webhook'],
  ['/apis', { identifier: 'https://api.example', name: 'API' }, { name: 'The API' }, 'api'],
  [
    '/clients',
    { client_id: 'api', name: 'API', type: 'confidential', grant_types: ['client_credentials'], scopes: [] },
    { name: 'An API' },
    'client',
  ],
  [
    '/identity-providers',
    { name: 'G', alias: 'google', type: 'oidc', preset: 'google', client_id: 'x', client_secret: 'y' },
    { name: 'Google' },
    'identity_provider',
  ],
]

const runs: (() => Promise<void>)[] = []
/**
 * Declares a test whose body runs only once. The last test of this file needs the events of all bodies. It
 * runs each body that has not run yet.
 */
const operation = (title: string, body: () => Promise<void>) => {
  let running: Promise<void> | undefined
  const run = () => {
    running ??= body()
    return running
  }
  runs.push(run)
  test(title, run)
}

describe('each operation records its events, and no others', () => {
  for (const [path, body, change, kind] of resources)
    operation(`EVT-06 ${path}: created, updated, deleted; reading and refusals nothing`, async () => {
      let id = ''
      expect(
        await recorded(async () => {
          const made = await create(app, path, body)
          id = made.client_id && kind === 'client' ? made.client_id : made.id
        }),
      ).toEqual([by(`${kind}.created`, id)])
      const one = `${path}/${encodeURIComponent(id)}`
      expect(await recorded(() => app.admin('PUT', one, change))).toEqual([by(`${kind}.updated`, id)])
      expect(await recorded(() => app.admin('PUT', one, change))).toEqual([])
      expect(
        await recorded(async () => {
          expect((await app.admin('GET', one)).status).toBe(200)
          expect((await app.admin('GET', path)).status).toBe(200)
          expect((await app.admin('POST', path, body)).status).toBe(409)
          expect((await app.admin('POST', path, {})).status).toBe(422)
          expect((await app.admin('PUT', one, { nonsense: 1 })).status).toBe(422)
        }),
      ).toEqual([])
      expect(await recorded(() => app.admin('DELETE', one))).toEqual([by(`${kind}.deleted`, id)])
      expect(await recorded(async () => expect((await app.admin('DELETE', one)).status).toBe(404))).toEqual(
        [],
      )
    })

  operation(
    'EVT-09 enabling and disabling have events of their own, plus user.updated when more changed',
    async () => {
      const { id } = await addUser(app, 'eve')
      const put = (change: Json) => recorded(() => app.admin('PUT', `/users/${id}`, change))
      expect(await put({ enabled: false })).toEqual([by('user.disabled', id)])
      expect(await put({ enabled: false })).toEqual([])
      expect((await put({ enabled: true, first_name: 'Eva' })).sort()).toEqual([
        by('user.enabled', id),
        by('user.updated', id),
      ])
    },
  )

  operation('EVT-11 members of groups, secrets of clients', async () => {
    const { id } = await addUser(app, 'gil')
    const group = await create(app, '/groups', { name: 'Crew' })
    const member = `/groups/${group.id}/members/${id}`
    expect(await recorded(() => app.admin('PUT', member))).toEqual([by('group.updated', group.id)])
    expect(await recorded(() => app.admin('DELETE', member))).toEqual([by('group.updated', group.id)])
    await addClient(app, 'rotating')
    const refused = authorizeUrl('rotating', { redirect_uri: 'https://other.example/' })
    expect(await recorded(() => openBrowser(app).get(refused))).toEqual([
      by('client.request_refused', 'rotating', null),
    ])
    expect(await recorded(() => app.admin('POST', '/clients/rotating/secret'))).toEqual([
      by('client.secret_regenerated', 'rotating'),
    ])
  })

  operation('EVT-10 logins, tokens and sessions', async () => {
    const user = await addUser(app, 'tom')
    const client = await addClient(app, 'shop', {
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      capabilities: ['token_introspection'],
    })
    const { client_id, client_secret } = client
    const credentials = { client_id, client_secret }
    const browser = openBrowser(app)
    expect(
      await recorded(async () => {
        const page = await browser.get(authorizeUrl('shop'))
        await signIn(browser, page, 'tom', 'wrong')
        await signIn(browser, page, 'nobody-here', 'wrong')
      }),
    ).toEqual([by('user.login_failed', user.id, null), by('user.login_failed', '', null)])
    const { code = '' } = await logInTo(browser, 'shop', 'tom')
    let tokens: Json
    expect(
      await recorded(async () => {
        tokens = (await redeem(app, client, code)).body
      }),
    ).toEqual([
      by('user.login', user.id, user.id),
      by('session.created', 'sess_', user.id),
      by('token.issued', 'sess_', user.id),
    ])
    expect(
      await recorded(async () => {
        tokens = { ...tokens, ...(await refresh(app, client, tokens.refresh_token)).body }
      }),
    ).toEqual([by('token.refreshed', 'sess_', user.id)])
    expect(
      await recorded(() => post(app, '/oauth/introspect', { ...credentials, token: tokens.access_token })),
    ).toEqual([by('token.introspected', 'sess_', 'shop')])
    expect(
      await recorded(() => post(app, '/oauth/token', { ...credentials, grant_type: 'client_credentials' })),
    ).toEqual(['token.issued by shop of client shop'])
    expect(await recorded(() => post(app, '/oauth/revoke', { token: tokens.refresh_token }))).toEqual([
      by('token.revoked', 'sess_', user.id),
    ])
    // A login by single sign-on is recorded when its code is exchanged.
    const { code: second = '' } = Object.fromEntries(
      new URL((await browser.get(authorizeUrl('shop'))).location ?? '').searchParams,
    )
    expect(await recorded(() => redeem(app, client, second))).toHaveLength(3)
    expect(await recorded(() => browser.get(`/oauth/logout?id_token_hint=${tokens.id_token}`))).toEqual([
      by('user.logout', user.id, user.id),
      by('session.revoked', 'sess_', user.id),
    ])
    expect(
      await recorded(async () => {
        await app.call('/oauth/userinfo', { headers: { authorization: 'Bearer x' } })
        await post(app, '/oauth/token', { ...credentials, grant_type: 'refresh_token', refresh_token: 'x' })
        await post(app, '/oauth/token', { ...credentials, grant_type: 'password' })
        await post(app, '/oauth/revoke', { token: 'x' })
      }),
    ).toEqual([])
  })

  operation('EVT-12 sessions: revoked by an admin, by a reset, by their own end', async () => {
    const user = await addUser(app, 'sam')
    const client = await addClient(app, 'desk', { access_token_ttl: 60, refresh_token_ttl: 300 })
    const revoked = by('session.revoked', 'sess_')
    await grantTokens(app, client, user)
    const [session] = (await app.admin('GET', `/sessions?user_id=${user.id}`)).body.data
    expect(await recorded(() => app.admin('DELETE', `/sessions/${session.id}`))).toEqual([revoked])
    expect(
      await recorded(async () =>
        expect((await app.admin('DELETE', `/sessions/${session.id}`)).status).toBe(404),
      ),
    ).toEqual([])
    for (let i = 0; i < 2; i++) await grantTokens(app, client, user)
    expect(await recorded(() => app.admin('DELETE', `/users/${user.id}/sessions`))).toEqual([
      revoked,
      revoked,
    ])
    await grantTokens(app, client, user)
    expect(await recorded(() => app.admin('DELETE', '/sessions?client_id=desk'))).toEqual([revoked])
    await grantTokens(app, client, user)
    const reset = () => app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD })
    expect((await recorded(reset)).sort()).toEqual([revoked, by('user.password_reset', user.id)])
    await grantTokens(app, client, user)
    app.clock.advance(301_000)
    expect(await recorded(() => sweep(app.context))).toEqual([by('session.expired', 'sess_', null)])
    expect(await recorded(() => sweep(app.context))).toEqual([])
  })

  operation('a replay: the session is revoked, by the client that presented it', async () => {
    const user = await addUser(app, 'rob')
    const client = await addClient(app, 'bay')
    const code = await addCode(app, client, user)
    await redeem(app, client, code)
    expect(await recorded(() => redeem(app, client, code))).toEqual([by('session.revoked', 'sess_', 'bay')])
    const { refresh_token } = await grantTokens(app, client, user)
    await refresh(app, client, refresh_token)
    expect(await recorded(() => refresh(app, client, refresh_token))).toEqual([
      by('session.revoked', 'sess_', 'bay'),
    ])
  })

  operation('EVT-07 a person’s own new password', async () => {
    const user = await addUser(app, 'pia')
    await addClient(app, 'web')
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD, temporary: true })
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get(authorizeUrl('web')), 'pia')
    const next = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }
    expect(await recorded(() => browser.submit(page, next))).toEqual([
      by('user.password_changed', user.id, user.id),
    ])
  })

  operation('EVT-08 deletions leave one event each; what they take along has none', async () => {
    const organization = await addOrganization(app, 'gone')
    const user = await addUser(app, 'leo', { organization_id: organization.id })
    const client = await addClient(app, 'gone-web', {
      organization_id: organization.id,
      capabilities: ['token_introspection'],
      refresh_token_ttl: 300,
    })
    const { access_token } = await grantTokens(app, client, user)
    const about = async (query: string) =>
      (await app.admin('GET', `/events?${query}&limit=100`)).body.data.map(({ type }: Json) => type)
    expect(await about(`actor_id=${user.id}`)).toHaveLength(3)
    // Others cause these events about the user.
    await post(app, '/oauth/introspect', { ...secretOf(client), token: access_token })
    app.clock.advance(301_000)
    await sweep(app.context)
    const ofSession = `target_id=sess_${claimsOf(access_token).sid}`
    expect((await about(ofSession)).slice(0, 2)).toEqual(['session.expired', 'token.introspected'])
    expect(await recorded(() => app.admin('DELETE', `/users/${user.id}`))).toEqual([
      by('user.deleted', user.id),
    ])
    expect(await about(ofSession)).toEqual([])
    expect(await about(`actor_id=${user.id}`)).toEqual([])
    expect(await about(`target_id=${user.id}`)).toEqual(['user.deleted'])
    expect(await recorded(() => app.admin('DELETE', `/organizations/${organization.id}`))).toEqual([
      by('organization.deleted', organization.id),
    ])
    expect(await about(`organization_id=${organization.id}`)).toEqual([])
    expect(await recorded(() => purge(app.context))).toEqual([])
    const [kept] = (await app.admin('GET', '/events?type=organization.deleted')).body.data
    expect(kept).toMatchObject({ target_id: organization.id, organization_id: 'org_default' })
  })

  test('R-19 every event type has an operation that causes it, except those listed', async () => {
    for (const run of runs) await run()
    app.clock.advance(DAY)
    const elsewhere = [
      'user.mfa_enabled',
      'user.mfa_disabled',
      'admin.settings_changed',
      // test/sign-in/unlock.test.ts
      'user.unlocked',
      // test/authorize/second-factor.test.ts
      'user.first_factor_proven',
      // test/authorize/remembered-browser.test.ts
      'user.browser_remembered',
      'user.browser_forgotten',
      'user.picture_refused',
      // test/authorize/email-code.test.ts
      'user.code_sent',
      // test/authorize/terms.test.ts
      'user.terms_accepted',
      // test/account/registration.test.ts
      'user.registered',
      'user.approved',
      // test/account/invitations.test.ts
      'invitation.created',
      'invitation.sent',
      'invitation.accepted',
      'invitation.withdrawn',
      'invitation.refused',
      // test/oauth/registration.test.ts, test/authorize/dynamic-clients.test.ts
      'client.registered',
      'client.first_used',
      // test/authorize/metadata-documents.test.ts
      'client.metadata_changed',
      'client.forgotten',
      // test/oauth/initial-access-tokens.test.ts
      'initial_access_token.created',
      // test/webhooks
      'webhook.secret_rotated',
      'webhook.disabled',
    ]
    expect<string[]>(eventTypes.filter(type => !caused.has(type)).sort()).toEqual(elsewhere.sort())
  })
})
