/**
 * Tests clients that authenticate with an assertion signed by a key of their metadata document
 * (`private_key_jwt`).
 */
import { beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import { json, WEB } from '#test/authorize/document-world.ts'
import { BASE, type Json } from '#test/support/app.ts'
import { get, post } from '#test/support/tokens.ts'
import { assertionWorld, ed, es, other, ps, rs, TYPE } from './assertion-world.ts'

const INTERNAL = 'http://gatehouse:8080'
const { answerWith, app, ask, asked, assert, codeOf, configure, keyed, logIn, person, seconds } =
  await assertionWorld({ internal_url: INTERNAL })
const unused = () => app.context.store.read(q => q.$count(q.tables.used_assertions))

beforeEach(async () => {
  // A test begins at a full second, when all assertions of earlier tests have expired.
  app.clock.advance(2 * HOUR - (app.clock.now() % SECOND))
  app.context.documents.clear()
  asked.length = 0
  await app.events()
})

describe('CMD-09 a client whose metadata document names keys signs an assertion', () => {
  test('CMD-09 for its code, each refresh and the revocation', async () => {
    const client = keyed()
    const redeemed = await ask(await codeOf(client), await assert(client))
    expect([redeemed.status, redeemed.body.token_type]).toEqual([200, 'Bearer'])
    const fields = { grant_type: 'refresh_token', refresh_token: redeemed.body.refresh_token }
    const refreshed = await ask({ ...fields, client_id: client.client_id }, await assert(client))
    expect(refreshed.status).toBe(200)
    const { refresh_token } = refreshed.body
    await ask({ token: refresh_token }, await assert(client, {}, other), '/oauth/revoke')
    const kept = await ask({ ...fields, refresh_token }, await assert(client))
    expect(kept.status).toBe(200)
    await app.events()
    await ask({ token: kept.body.refresh_token }, await assert(client), '/oauth/revoke')
    expect((await app.events()).map(({ type }) => type)).toEqual(['token.revoked'])
  })

  test.each([rs, ps, ed, es])('CMD-09 with $alg, by inline keys and by those at jwks_uri', async pair => {
    const jwks_uri = `https://agent.example/${pair.alg}.json`
    answerWith(jwks_uri, json({ keys: [other.jwk, pair.jwk] }))
    for (const keys of [{ jwks: { keys: [pair.jwk] } }, { jwks: undefined, jwks_uri }]) {
      const client = keyed({ ...keys, token_endpoint_auth_signing_alg: pair.alg })
      const { status } = await ask(
        await codeOf(client),
        await assert(client, { aud: `${BASE}/oauth/token` }, pair, { typ: 'client-authentication+jwt' }),
      )
      expect([pair.alg, status]).toEqual([pair.alg, 200])
    }
  })

  test('CMD-09 a client that must prove its key gets nothing without an assertion, and no page reads its answers', async () => {
    const client = keyed()
    const fields = await codeOf(client)
    const secrets = [{}, { client_secret: 'x' }]
    for (const more of secrets) {
      const { status, body } = await ask({ ...fields, client_id: client.client_id, ...more })
      expect([status, body.error]).toEqual([401, 'invalid_client'])
    }
    const headers = { origin: 'https://page.example' }
    const body = new URLSearchParams({ ...fields, client_id: client.client_id })
    const told = await app.call('/oauth/token', { method: 'POST', body, headers })
    expect(told.headers.get('access-control-allow-origin')).toBeNull()
    expect((await ask(fields, await assert(client))).status).toBe(200)
  })

  test('CMD-09 a client that also lists none may omit the assertion, and a wrong assertion is refused', async () => {
    const both = { token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] }
    const client = keyed(both)
    const fields = await codeOf(client)
    expect((await ask(fields, await assert(client, {}, other))).status).toBe(401)
    expect((await ask(fields, await assert(client))).status).toBe(200)
    const next = await codeOf(client)
    expect((await ask({ ...next, client_id: client.client_id })).status).toBe(200)
  })

  test('CMD-09 a client that also lists none is accepted when its keys cannot be read', async () => {
    const client_id = 'https://chatgpt.com/oauth/client.json'
    const redirect_uri = 'https://chatgpt.com/connector_platform_oauth_redirect'
    const { answer } = await logIn({ client_id }, { redirect_uri }, await person())
    const fields = { ...(await codeOf(keyed())), code: answer.code, redirect_uri }
    expect((await ask(fields, await assert({ client_id }, {}, rs))).status).toBe(200)
  })

  test('CMD-09 with the endpoint at internal_url as audience, which discovery names to servers', async () => {
    const client = keyed()
    const fields = await codeOf(client)
    expect((await ask(fields, await assert(client, { aud: INTERNAL }))).status).toBe(401)
    expect((await ask(fields, await assert(client, { aud: `${INTERNAL}/oauth/token` }))).status).toBe(200)
  })

  const late: Record<string, () => Json> = {
    'behind, so it expired nine seconds ago': () => ({ exp: seconds() - 9 }),
    'behind, with a fraction of a second': () => ({ exp: seconds() - 9.9995 }),
    'ahead, so it begins in ten seconds': () => ({ nbf: seconds() + 10, iat: seconds() + 10 }),
    'ahead, so it expires in an hour and ten seconds': () => ({ exp: seconds() + 3610 }),
  }
  test.each(Object.keys(late))('CMD-09 with a clock that is %s', async name => {
    const client = keyed()
    const [fields, before] = [await codeOf(client), await unused()]
    await app.events()
    const { status, body } = await ask(fields, await assert(client, late[name]?.()))
    expect([status, body.token_type, await unused()]).toEqual([200, 'Bearer', before + 1])
    const events = (await app.events()).map(({ type }) => type)
    expect(events).toEqual(['user.login', 'session.created', 'token.issued'])
  })

  test('CMD-09 changed keys and methods ask for consent again', async () => {
    const client = keyed()
    const { browser } = await logIn(client)
    const isAsked = async (more: Json) => {
      app.clock.advance(2 * HOUR)
      keyed(more, client.client_id)
      const url = `/oauth/authorize?${new URLSearchParams({
        client_id: client.client_id,
        redirect_uri: WEB,
        response_type: 'code',
        scope: 'openid',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })}`
      const page = await browser.follow(await browser.get(url))
      const isConsent = page.html.includes('/oauth/consent')
      if (isConsent) await browser.submit(page, { decision: 'approve' }, '/oauth/consent')
      return isConsent
    }
    expect(await isAsked({})).toBe(false)
    expect(await isAsked({ jwks: { keys: [other.jwk] } })).toBe(true)
    expect(await isAsked({ jwks: { keys: [other.jwk] }, client_name: 'New' })).toBe(false)
    const methods = { token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] }
    expect(await isAsked({ jwks: { keys: [other.jwk] }, ...methods })).toBe(true)
  })

  test('CMD-09 discovery names method and algorithms where documents are read', async () => {
    const told = async () => (await get(app, '/.well-known/oauth-authorization-server')).body
    const algs = ['ES256', 'EdDSA', 'PS256', 'RS256']
    expect(await told()).toMatchObject({
      token_endpoint_auth_methods_supported: [
        'client_secret_basic',
        'client_secret_post',
        'none',
        'private_key_jwt',
      ],
      token_endpoint_auth_signing_alg_values_supported: algs,
      revocation_endpoint_auth_signing_alg_values_supported: algs,
    })
    await configure({ client_metadata_documents: 'off' })
    const closed = await told()
    expect(closed.token_endpoint_auth_methods_supported).not.toContain('private_key_jwt')
    expect(closed.token_endpoint_auth_signing_alg_values_supported).toBeUndefined()
    await configure({ client_metadata_documents: 'any' })
  })
})

describe('CMD-10 an assertion is refused', () => {
  const client = keyed()
  let fields: Json
  beforeEach(async () => {
    fields = await codeOf(client)
  })

  const refused = async (assertion: string, more: Json = {}, error = 'invalid_client') => {
    const before = await unused()
    const answer = await ask({ ...fields, ...more }, assertion)
    expect([answer.body.error, await unused()]).toEqual([error, before])
    expect(JSON.stringify(answer.body)).not.toContain(assertion)
  }

  const wrong: Record<string, () => Json> = {
    'another server as audience': () => ({ aud: 'https://elsewhere.example' }),
    'the revocation endpoint as audience': () => ({ aud: `${BASE}/oauth/revoke` }),
    'two audiences': () => ({ aud: [BASE, 'https://elsewhere.example'] }),
    'no audience': () => ({ aud: undefined }),
    'an issuer that is not its subject': () => ({ iss: 'https://elsewhere.example/client.json' }),
    'no issuer': () => ({ iss: undefined }),
    'no expiry': () => ({ exp: undefined }),
    'an expiry that has passed': () => ({ exp: seconds() - 11 }),
    'an expiry that passed as long ago as the clocks may differ': () => ({ exp: seconds() - 10 }),
    'an expiry in more than an hour': () => ({ exp: seconds() + 3611 }),
    'a text as expiry': () => ({ exp: '9999999999' }),
    'a beginning in the future': () => ({ nbf: seconds() + 11 }),
    'no id': () => ({ jti: undefined }),
    'an empty id': () => ({ jti: '' }),
    'a number as id': () => ({ jti: 1 }),
  }
  test.each(Object.keys(wrong))('CMD-10 with %s', async name => {
    await refused(await assert(client, wrong[name]?.()))
  })

  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  test('CMD-10 without a signature, with a symmetric signature by the public key, or with a changed signature', async () => {
    const claims = part({
      iss: client.client_id,
      sub: client.client_id,
      aud: BASE,
      jti: 'forged',
      exp: seconds() + 60,
    })
    await refused(`${part({ alg: 'none' })}.${claims}.`)
    const input = `${part({ alg: 'HS256', kid: es.kid })}.${claims}`
    for (const key of [JSON.stringify(es.jwk), es.jwk.x ?? ''])
      await refused(`${input}.${createHmac('sha256', key).update(input).digest('base64url')}`)
    const [header, , signature] = (await assert(client)).split('.')
    await refused(`${header}.${claims}.${signature}`)
  })

  test('CMD-10 with the key of another client, a key in its own header, or another algorithm', async () => {
    const theirs = keyed({ jwks: { keys: [other.jwk] } })
    await refused(await assert(client, {}, other))
    await refused(await assert(client, {}, { ...other, kid: es.kid }))
    await refused(await assert(client, {}, other, { jwk: other.jwk }))
    // The server does not know this client before its first login. After the login, the assertion is valid,
    // but the code belongs to another client.
    const { body } = await ask(fields, await assert(theirs, {}, other))
    expect(body.error).toBe('invalid_client')
    await codeOf(theirs)
    expect((await ask(fields, await assert(theirs, {}, other))).body.error).toBe('invalid_grant')
    const limited = keyed({ jwks: { keys: [es.jwk, rs.jwk] }, token_endpoint_auth_signing_alg: 'RS256' })
    const more = await codeOf(limited)
    expect((await ask(more, await assert(limited))).status).toBe(401)
    expect((await ask(more, await assert(limited, {}, rs))).status).toBe(200)
  })

  test('CMD-10 that names another client, or comes with a secret or without its type', async () => {
    const good = () => assert(client)
    await refused(await good(), { client_id: 'shop' })
    await refused(await good(), { client_id: client.client_id, client_secret: 'x' }, 'invalid_request')
    for (const client_assertion_type of [
      undefined,
      'urn:ietf:params:oauth:client-assertion-type:saml2-bearer',
    ])
      expect(
        (
          await post(app, '/oauth/token', {
            ...fields,
            client_assertion: await good(),
            client_assertion_type,
          })
        ).body.error,
      ).toBe('invalid_client')
    const header = await app.call('/oauth/token', {
      method: 'POST',
      body: new URLSearchParams({ ...fields, client_assertion: await good(), client_assertion_type: TYPE }),
      headers: { authorization: `Basic ${btoa('shop:x')}` },
    })
    expect(header.status).toBe(400)
  })

  test.each([
    '',
    'x',
    'a.b.c',
    '..',
    `${'a'.repeat(9000)}.e30.a`,
    `a.${part({ sub: 1 })}.c`,
    `a.${part([])}.c`,
  ])('CMD-10 that is no JWT (%#)', async text => {
    const answer = await post(app, '/oauth/token', {
      ...fields,
      client_assertion: text,
      client_assertion_type: TYPE,
    })
    expect(answer.body.error).toBe('invalid_client')
  })

  test('CMD-10 the second time, also by many at once; its id is kept until it expires', async () => {
    const mine = keyed()
    const signed = await assert(mine, { jti: 'once' })
    const codes = await Promise.all([codeOf(mine), codeOf(mine), codeOf(mine)])
    const answers = await Promise.all(codes.map(code => ask(code, signed)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
    const theirs = keyed()
    const before = await unused()
    expect((await ask(await codeOf(theirs), await assert(theirs, { jti: 'once' }))).status).toBe(200)
    expect(await unused()).toBe(before + 1)
    app.clock.advance(6 * MINUTE + 10 * SECOND)
    await sweep(app.context)
    expect(await unused()).toBe(0)
  })

  test.each([300, 299.5])('CMD-10 again after its %d s, while the clocks may differ', async lifetime => {
    const mine = keyed()
    const signed = await assert(mine, { exp: seconds() + lifetime })
    expect((await ask(await codeOf(mine), signed)).status).toBe(200)
    app.clock.advance(5 * MINUTE + 10 * SECOND - 1)
    const ahead = { now: () => app.clock.now() + MINUTE }
    await sweep({ ...app.context, clock: ahead })
    const code = await codeOf(mine)
    await app.events()
    const again = await ask(code, signed)
    expect([again.status, again.body.error, await unused()]).toEqual([401, 'invalid_client', 1])
    expect(await app.events()).toEqual([])
    expect((await ask(code, await assert(mine))).status).toBe(200)
  })

  test('CMD-10 at the introspection endpoint, and of a client that an administrator registered', async () => {
    const answer = await ask({ token: 'x' }, await assert(client), '/oauth/introspect')
    expect([answer.status, answer.body.error]).toEqual([401, 'invalid_client'])
    const shop = { client_id: 'shop' }
    expect((await ask({ grant_type: 'client_credentials' }, await assert(shop))).status).toBe(401)
  })

  test('CMD-10 of a document whose keys are unusable', async () => {
    const huge = { ...rs.jwk, n: 'A'.repeat(2000) }
    const exponent = { ...rs.jwk, e: 'A'.repeat(100) }
    for (const jwk of [huge, exponent, { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }, { kty: 'none' }]) {
      const odd = keyed({ jwks: { keys: [{ ...jwk, kid: rs.kid }] } })
      const code = await codeOf(odd)
      expect((await ask(code, await assert(odd, {}, rs))).body.error).toBe('invalid_client')
    }
  })
})
