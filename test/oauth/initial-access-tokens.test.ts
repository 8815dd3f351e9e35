/** Tests registrations with an initial access token (RFC 7591 section 3). */
import { beforeEach, expect, test } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addOrganization, addUser, authorizeUrl, REDIRECT, signIn } from '#test/support/people.ts'
import { redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme', { settings: { client_registration: 'initial_access_token' } })
await addUser(app, 'amy', { organization_id: acme.id })
await addUser(app, 'alice')
const policy = (organization: string, client_registration: string) =>
  app.admin('PUT', `/organizations/${organization}`, { settings: { client_registration } })

const newToken = async (more: Json = {}) =>
  (await app.admin('POST', '/initial-access-tokens', { organization_id: acme.id, ...more })).body
const register = async (
  token: string | undefined,
  more: Json = {},
  { ip = '127.0.0.1', ...headers }: Record<string, string> = {},
) => {
  const answer = await app.call('/oauth/register', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify({
      client_name: 'Agent',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      ...more,
    }),
    ip,
  })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Json }
}
const rows = () =>
  app.context.store.read(async q => ({
    clients: await q.select().from(q.tables.dynamic_clients),
    tokens: await q.select().from(q.tables.initial_access_tokens),
  }))
const logIn = async (client: Json, username: string, organization_id: string) => {
  const browser = openBrowser(app)
  const page = await browser.get(authorizeUrl(client.client_id, { organization_id }))
  if (page.status !== 200) return page.status
  const consent = await signIn(browser, page, username)
  return answerOf(await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')).code ?? ''
}

beforeEach(async () => {
  app.clock.advance(2 * DAY)
  await sweep(app.context)
  await app.admin('GET', '/me')
  await app.events()
})

test('DCR-11 a token is shown once, and only its hash is stored', async () => {
  const token = await newToken({ uses: 3, expires_in: 600 })
  expect(token).toEqual({
    id: expect.stringMatching(/^iat_/),
    organization_id: acme.id,
    token: expect.stringMatching(/^[\w-]{43}$/),
    uses: 3,
    expires_at: new Date(app.clock.now() + 600_000).toISOString(),
  })
  expect(JSON.stringify(await rows())).not.toContain(token.token)
  expect(
    (await app.events()).map(({ type, target_id, organization_id }) => [type, target_id, organization_id]),
  ).toEqual([['initial_access_token.created', token.id, acme.id]])
})

test('DCR-11 as many clients register as it has uses, until it expires', async () => {
  const { token } = await newToken({ uses: 2 })
  const [first, second] = [await register(token), await register(token)]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(first.body.client_id).toMatch(/^dct_[\w-]{43}$/)
  expect(second.body.client_id).not.toBe(first.body.client_id)
  expect((await app.events()).map(({ type, organization_id }) => [type, organization_id])).toEqual([
    ['initial_access_token.created', acme.id],
    ['client.registered', acme.id],
    ['client.registered', acme.id],
  ])
  const { token: late } = await newToken({ expires_in: 60 })
  app.clock.advance(60_000)
  await app.events()
  const before = await rows()
  for (const bad of [token, late, '', 'unknown', undefined]) {
    const { status, headers, body } = await register(bad)
    expect([status, body.error]).toEqual([401, 'invalid_token'])
    const challenge = bad === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
    expect(headers.get('www-authenticate')).toBe(challenge)
  }
  expect(await rows()).toEqual(before)
  expect(await app.events()).toEqual([])
})

test('DCR-11 a token of an organization that accepts no registrations any more is unknown and keeps its use', async () => {
  const { token } = await newToken()
  await policy('default', 'initial_access_token')
  await policy('acme', 'off')
  expect(await register(token)).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
  await policy('acme', 'initial_access_token')
  await policy('default', 'off')
  expect((await register(token)).status).toBe(201)
})

test('DCR-10 no web page reads the answer to a registration with a token', async () => {
  const answer = await register((await newToken()).token, {}, { origin: 'https://app.example' })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('access-control-allow-origin')).toBeNull()
})

test('DCR-11 strangers with wrong tokens do not use up the registrations of the instance', async () => {
  const { token } = await newToken()
  for (let network = 0; network < 250; network++)
    for (let i = 0; i < 5; i++)
      expect((await register('wrong', {}, { ip: `198.18.${network}.1` })).status).toBe(401)
  expect((await register(token)).status).toBe(201)
})

test('DCR-11 refused metadata takes no use, and two requests at once take no more uses than there are', async () => {
  const { token } = await newToken()
  expect((await register(token, { redirect_uris: ['javascript:x'] })).status).toBe(400)
  const answers = await Promise.all([register(token), register(token), register(token)])
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 401, 401])
})

test('DCR-11 wrong fields are 422, and the bounds are 90 days and 1,000 uses', async () => {
  for (const body of [
    { uses: 0 },
    { uses: 1001 },
    { expires_in: 59 },
    { expires_in: 90 * 86_400 + 1 },
    { scope: 'x' },
  ])
    expect([body, (await app.admin('POST', '/initial-access-tokens', body)).status]).toEqual([body, 422])
  const longest = await app.admin('POST', '/initial-access-tokens', { uses: 1000, expires_in: 90 * 86_400 })
  expect([longest.status, longest.body.organization_id]).toEqual([201, 'org_default'])
})

test('DCR-12 the client signs in only users of its organization, even if another organization is open', async () => {
  const { token } = await newToken()
  const { body: client } = await register(token)
  const code = await logIn(client, 'amy', acme.id)
  const granted = await redeem(app, client, `${code}`)
  expect(granted.status).toBe(200)
  await policy('default', 'open')
  expect(await logIn(client, 'alice', 'org_default')).toBe(400)
  const { body: open } = await register(undefined)
  expect(open.client_id).toMatch(/^dcr_/)
  expect(await logIn(open, 'amy', acme.id)).toBe(400)
  expect((await refresh(app, client, granted.body.refresh_token)).status).toBe(200)
})

test('DCR-12 a stricter policy ends only the sessions of clients that it excludes', async () => {
  await policy('acme', 'open')
  const { body: open } = await register(undefined)
  const { body: own } = await register((await newToken()).token)
  const grant = async (client: Json) =>
    (await redeem(app, client, `${await logIn(client, 'amy', acme.id)}`)).body
  const [theirs, owns] = [await grant(open), await grant(own)]
  await policy('acme', 'initial_access_token')
  expect((await refresh(app, open, theirs.refresh_token)).body.error).toBe('invalid_grant')
  expect((await refresh(app, own, owns.refresh_token)).status).toBe(200)
})

test('DCR-11 tokens and clients go with their organization', async () => {
  const gone = await addOrganization(app, 'gone', {
    settings: { client_registration: 'initial_access_token' },
  })
  const { token } = await newToken({ organization_id: gone.id, uses: 2 })
  await register(token)
  await app.admin('DELETE', `/organizations/${gone.id}`)
  const { clients, tokens } = await rows()
  expect([...clients, ...tokens].filter(({ organization_id }) => organization_id === gone.id)).toEqual([])
  expect((await register(token)).status).toBe(401)
})
