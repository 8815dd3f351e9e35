/** Tests client keys that are published at a URL of the metadata document (`jwks_uri`). */
import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { sweep } from '#src/operations/sweep.ts'
import { json, tools } from '#test/authorize/document-world.ts'
import type { Json } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { assertionWorld, es, other } from './assertion-world.ts'

const { answerWith, app, ask, asked, assert, codeOf, configure, keyed } = await assertionWorld()

beforeEach(async () => {
  app.clock.advance(HOUR)
  app.context.documents.clear()
  asked.length = 0
  await app.events()
})

describe('CMD-11 keys at another address', () => {
  let urls = 0
  /** A client with `jwks_uri`. */
  const remote = (keys: object, more: Json = {}) => {
    const jwks_uri = `https://keys${++urls}.example/jwks`
    answerWith(jwks_uri, json(keys))
    return keyed({ jwks: undefined, jwks_uri, ...more })
  }
  const calls = ({ jwks_uri }: Json) => asked.filter(url => url === jwks_uri).length
  const sessionOf = async (client: Json) => {
    const { body } = await ask(await codeOf(client), await assert(client))
    return {
      refresh: async (pair = es) => {
        const fields = { grant_type: 'refresh_token', refresh_token: body.refresh_token }
        const answer = await ask(fields, await assert(client, {}, pair))
        if (answer.status === 200) body.refresh_token = answer.body.refresh_token
        return answer.body.error ?? answer.status
      },
    }
  }

  test('CMD-11 are not read for an unknown code or token', async () => {
    const client = remote({ keys: [es.jwk] })
    await codeOf(client)
    const theirs = keyed()
    const { refresh_token } = (await ask(await codeOf(theirs), await assert(theirs))).body
    const invented = newId('sess', app.clock.now())
    for (const fields of [
      { ...(await codeOf(keyed())), code: 'unknown' },
      await codeOf(keyed()),
      { grant_type: 'refresh_token', refresh_token: 'unknown' },
      { grant_type: 'refresh_token', refresh_token: `${invented}${'a'.repeat(46)}` },
      { grant_type: 'refresh_token', refresh_token },
      { grant_type: 'client_credentials' },
    ])
      expect((await ask(fields, await assert(client))).body.error).toBe('invalid_grant')
    expect(calls(client)).toBe(0)
  })

  test('CMD-11 are not read for a token whose session is deleted, which is no guess', async () => {
    const client = remote({ keys: [es.jwk] })
    const { refresh_token } = (await ask(await codeOf(client), await assert(client))).body
    await ask({ token: refresh_token }, undefined, '/oauth/revoke')
    app.clock.advance(DAY + 10 * MINUTE)
    await sweep(app.context)
    await app.events()
    const fields = { grant_type: 'refresh_token', refresh_token }
    for (let i = 0; i < 40; i++)
      expect((await ask(fields, await assert(client), undefined, '203.0.113.1')).body).toMatchObject({
        error: 'invalid_grant',
        error_description: 'The session has ended.',
      })
    expect([calls(client), await app.events()]).toEqual([1, []])
  })

  test('CMD-11 are read once, and for a new key once a minute', async () => {
    const client = remote({ keys: [es.jwk] })
    const { refresh } = await sessionOf(client)
    app.clock.advance(MINUTE)
    expect([await refresh(), calls(client)]).toEqual([200, 1])
    for (let i = 0; i < 5; i++) expect(await refresh(other)).toBe('invalid_client')
    expect(calls(client)).toBe(2)
    answerWith(client.jwks_uri, json({ keys: [other.jwk] }))
    expect([await refresh(other), calls(client)]).toEqual(['invalid_client', 2])
    app.clock.advance(MINUTE)
    expect([await refresh(other), calls(client)]).toEqual([200, 3])
    expect([await refresh(), calls(client)]).toEqual(['invalid_client', 3])
  })

  test('CMD-11 are used for a day when they cannot be read again, and asked for once a minute', async () => {
    const client = remote({ keys: [es.jwk] })
    const { refresh } = await sessionOf(client)
    answerWith(client.jwks_uri, () => new Response(null, { status: 500 }))
    app.clock.advance(2 * HOUR)
    for (let i = 0; i < 3; i++) expect([await refresh(), calls(client)]).toEqual([200, 2])
    app.clock.advance(DAY - 2 * HOUR)
    expect([await refresh(), calls(client)]).toEqual(['invalid_client', 3])
    answerWith(client.jwks_uri, json({ keys: [es.jwk] }))
    app.clock.advance(MINUTE)
    expect(await refresh()).toBe(200)
  })

  test.each([200, 500])('CMD-11 are read again when the clock is set back (status %d)', async status => {
    const client = remote({ keys: [es.jwk] })
    app.clock.advance(DAY)
    answerWith(client.jwks_uri, () => Response.json({ keys: [es.jwk] }, { status }))
    const code = await codeOf(client)
    expect((await ask(code, await assert(client))).status).toBe(status === 200 ? 200 : 401)
    app.clock.advance(-DAY)
    answerWith(client.jwks_uri, json({ keys: [other.jwk] }))
    expect((await ask(await codeOf(client), await assert(client, {}, other))).status).toBe(200)
  })

  const unusable: Record<string, object> = {
    'hold a private key': { keys: [{ ...es.jwk, d: 'd' }] },
    'hold a symmetric key': { keys: [es.jwk, { kty: 'oct', k: 'k' }] },
    'are no list': { keys: es.jwk },
    'are more than 100': { keys: Array.from({ length: 101 }, () => es.jwk) },
    'have more than 64 KiB': { keys: [es.jwk], filler: 'a'.repeat(64 * 1024) },
  }
  test.each(Object.keys(unusable))('CMD-11 that %s are refused', async name => {
    const client = remote(unusable[name] ?? {})
    const code = await codeOf(client)
    expect((await ask(code, await assert(client))).body.error).toBe('invalid_client')
    expect(calls(client)).toBe(1)
  })

  test.each(['https://127.0.0.1/jwks', 'https://169.254.169.254/jwks', 'https://localhost/jwks'])(
    'CMD-11 at the private address %s are refused',
    async jwks_uri => {
      const client = keyed({ jwks: undefined, jwks_uri })
      const code = await codeOf(client)
      expect((await ask(code, await assert(client))).body.error).toBe('invalid_client')
    },
  )

  test('CMD-11 the calls to one origin are bounded, and documents of other origins do not use up its limit', async () => {
    const shared = (n: number) => `https://victim.example/jwks${n}`
    const statuses: number[] = []
    for (let n = 0; n < 33; n++) {
      answerWith(shared(n), json({ keys: [es.jwk] }))
      const client = keyed({ jwks: undefined, jwks_uri: shared(n) })
      const code = await codeOf(client)
      statuses.push((await ask(code, await assert(client))).status)
    }
    expect(statuses.filter(status => status === 200).length).toBe(30)
    expect(statuses.slice(30)).toEqual([429, 429, 429])
    const own = keyed({ jwks: undefined, jwks_uri: shared(99) }, 'https://victim.example/client.json')
    answerWith(shared(99), json({ keys: [es.jwk] }))
    expect((await ask(await codeOf(own), await assert(own))).status).toBe(200)
  })

  test('CMD-11 are those of the organization of the login', async () => {
    const acme = await addOrganization(app, 'acme')
    await addUser(app, 'amy', { organization_id: acme.id })
    const resource = 'https://acme.example/mcp'
    await create(app, '/apis', { ...tools, identifier: resource, organization_id: acme.id })
    await configure({ client_metadata_documents: 'any' }, 'acme')
    const client = remote({ keys: [es.jwk] })
    const code = await codeOf(client, 'amy', { resource })
    expect((await ask(code, await assert(client))).status).toBe(200)
    const known = [...app.context.documents.keys()].filter(key => key.startsWith('keys'))
    expect(known).toEqual([`keys ${acme.id} ${client.jwks_uri}`])
  })
})
