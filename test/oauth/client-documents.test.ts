/** Tests clients that sign assertions, after their metadata document has changed. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { chargeReread } from '#src/http/rate-limits.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { json, request } from '#test/authorize/document-world.ts'
import type { Json } from '#test/support/app.ts'
import { assertionWorld, es, other } from './assertion-world.ts'

const { answerWith, app, ask, asked, assert, codeOf, keyed, logIn, open, person } = await assertionWorld()
const unused = () => app.context.store.read(q => q.$count(q.tables.used_assertions))

beforeEach(async () => {
  app.clock.advance(HOUR)
  app.context.documents.clear()
  asked.length = 0
  await app.events()
})

/** Uses up the reads of stored documents at the origin of a client. */
const spendReads = (client_id: string) =>
  expect(() => {
    for (;;) chargeReread(app.context, new URL(client_id).origin)
  }).toThrow()

/** A client with a session, and functions that refresh the session and publish another document. */
const refreshing = async (more: Json = {}) => {
  const mine = keyed(more)
  const { body } = await ask(await codeOf(mine), await assert(mine))
  return {
    mine,
    publish: (changed: Json) => answerWith(mine.client_id, json({ ...mine, ...changed })),
    refresh: async (pair = es) => {
      const fields = { grant_type: 'refresh_token', refresh_token: body.refresh_token }
      const answer = await ask(fields, await assert(mine, {}, pair))
      if (answer.status === 200) body.refresh_token = answer.body.refresh_token
      return answer.body.error ?? answer.status
    },
  }
}

describe('CMD-12 the document is read again for a code or refresh token of its client', () => {
  const calls = ({ client_id }: Json) => asked.filter(url => url === client_id).length

  test('CMD-12 a key that its owner replaced is refused, and the new one accepted', async () => {
    const { mine, publish, refresh } = await refreshing()
    publish({ jwks: { keys: [other.jwk] } })
    app.clock.advance(MINUTE)
    expect([await refresh(), calls(mine)]).toEqual([200, 1])
    app.clock.advance(HOUR)
    await app.events()
    expect(await refresh()).toBe('invalid_client')
    const events = (await app.events()).map(({ type, actor_id }) => [type, actor_id])
    expect(events).toEqual([['client.metadata_changed', mine.client_id]])
    app.clock.advance(MINUTE)
    expect([await refresh(other), await refresh(es)]).toEqual([200, 'invalid_client'])
  })

  test('CMD-12 for an unknown key once a minute, before the document is too old', async () => {
    const { mine, publish, refresh } = await refreshing()
    publish({ jwks: { keys: [es.jwk, other.jwk] } })
    for (let i = 0; i < 3; i++) expect(await refresh(other)).toBe('invalid_client')
    expect(calls(mine)).toBe(1)
    app.clock.advance(MINUTE)
    expect([await refresh(other), calls(mine)]).toEqual([200, 2])
  })

  test('CMD-12 its new key set, methods and redirect URIs count', async () => {
    const methods = { token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'] }
    const { mine, publish, refresh } = await refreshing(methods)
    const jwks_uri = 'https://agent.example/later.json'
    answerWith(jwks_uri, json({ keys: [other.jwk] }))
    publish({ token_endpoint_auth_methods_supported: undefined, jwks: undefined, jwks_uri })
    app.clock.advance(2 * HOUR)
    expect(await refresh(other)).toBe(200)
    const { client_id } = mine
    const fields = await codeOf(mine)
    expect((await ask({ ...fields, client_id })).body.error).toBe('invalid_client')
    publish({ token_endpoint_auth_method: 'none', jwks: undefined })
    app.clock.advance(2 * HOUR)
    expect(await refresh(other)).toBe('invalid_client')
    publish({})
    app.clock.advance(2 * HOUR)
    expect(await refresh(es)).toBe(200)
  })

  test('CMD-12 a document that cannot be read is used for a day, also after a restart and a failed login', async () => {
    const { mine, refresh } = await refreshing()
    answerWith(mine.client_id)
    app.context.documents.clear()
    await open(mine, {}, await person())
    expect([await refresh(), calls(mine)]).toEqual([200, 3])
    app.clock.advance(DAY - MINUTE)
    await open(mine, {}, await person())
    expect([await refresh(), calls(mine)]).toEqual([200, 4])
    app.clock.advance(MINUTE)
    expect([await refresh(), calls(mine)]).toEqual(['invalid_client', 5])
    answerWith(mine.client_id, json(mine))
    app.clock.advance(MINUTE)
    expect(await refresh()).toBe(200)
  })

  test('CMD-12 also when a login is reading it at the same time', async () => {
    const { mine, refresh } = await refreshing()
    app.context.documents.clear()
    const reading = Promise.withResolvers<void>()
    const failed = Promise.withResolvers<Response>()
    answerWith(mine.client_id, () => {
      reading.resolve()
      return failed.promise
    })
    const login = open(mine, {}, await person())
    await reading.promise
    await app.events()
    const [entry] = app.context.documents.values()
    // The read fails as soon as the assertion waits for it.
    const { found } = entry ?? {}
    Object.defineProperty(entry, 'found', {
      get: () => {
        failed.resolve(new Response(null, { status: 503 }))
        return found
      },
    })
    expect([await refresh(), calls(mine)]).toEqual([200, 2])
    expect((await app.events()).map(({ type }) => type)).toEqual(['token.refreshed'])
    expect((await login).page.status).toBe(400)
  })

  test('CMD-12 an older document in memory does not replace a newer one of another server', async () => {
    const { mine, publish, refresh } = await refreshing()
    const memory = [...app.context.documents]
    publish({ jwks: { keys: [other.jwk] } })
    app.context.documents.clear()
    app.clock.advance(MINUTE)
    expect(await refresh(other)).toBe(200)
    app.context.documents.clear()
    for (const [key, entry] of memory) app.context.documents.set(key, entry)
    app.clock.advance(MINUTE)
    await app.events()
    expect([await refresh(other), calls(mine)]).toEqual([200, 3])
    expect((await app.events()).map(({ type }) => type)).toEqual(['token.refreshed'])
  })

  test('CMD-12 nor while the newer one cannot be read, or may not be read', async () => {
    for (const block of [answerWith, spendReads]) {
      const { mine, publish, refresh } = await refreshing()
      const memory = [...app.context.documents]
      publish({ jwks: { keys: [other.jwk] } })
      app.context.documents.clear()
      app.clock.advance(MINUTE)
      expect(await refresh(other)).toBe(200)
      for (const [key, entry] of memory) app.context.documents.set(key, entry)
      app.clock.advance(MINUTE)
      block(mine.client_id)
      await app.events()
      expect([await refresh(es), await refresh(other)]).toEqual(['invalid_client', 200])
      expect((await app.events()).map(({ type }) => type)).toEqual(['token.refreshed'])
    }
  })

  test('CMD-12 nor when the clock of the other server is ahead', async () => {
    const { publish, refresh } = await refreshing()
    const memory = [...app.context.documents]
    publish({ jwks: { keys: [other.jwk] } })
    app.context.documents.clear()
    app.clock.advance(5 * SECOND)
    expect(await refresh(other)).toBe(200)
    for (const [key, entry] of memory) app.context.documents.set(key, entry)
    app.clock.advance(-4 * SECOND)
    await app.events()
    expect([await refresh(es), await refresh(other)]).toEqual(['invalid_client', 200])
    expect((await app.events()).map(({ type }) => type)).toEqual(['token.refreshed'])
  })

  test('CMD-12 nor for longer than a minute after the clock was a day ahead at the change', async () => {
    for (const block of [() => {}, answerWith, spendReads]) {
      const { mine, publish, refresh } = await refreshing()
      const memory = [...app.context.documents]
      publish({ jwks: { keys: [other.jwk] } })
      app.clock.advance(DAY)
      expect(await refresh(other)).toBe(200)
      app.clock.advance(-DAY)
      for (const [key, entry] of memory) app.context.documents.set(key, entry)
      app.clock.advance(2 * MINUTE)
      block(mine.client_id)
      await app.events()
      expect([await refresh(es), await refresh(other)]).toEqual(['invalid_client', 200])
      expect((await app.events()).map(({ type }) => type)).toEqual(['token.refreshed'])
    }
  })

  test('CMD-12 nor does it at a login, which asks for no further consent', async () => {
    const { mine, publish } = await refreshing()
    const memory = [...app.context.documents]
    publish({ jwks: { keys: [other.jwk] } })
    app.context.documents.clear()
    app.clock.advance(MINUTE)
    const { browser } = await logIn(mine, {}, await person())
    for (const [key, entry] of memory) app.context.documents.set(key, entry)
    app.clock.advance(MINUTE)
    await app.events()
    expect((await browser.get(request(mine))).location).toContain('code=')
    expect(await app.events()).toEqual([])
  })

  test('CMD-12 its reads use up no reads of key sets at its origin', async () => {
    const { mine, refresh } = await refreshing()
    const jwks_uri = new URL('/later.json', mine.client_id).href
    answerWith(jwks_uri, json({ keys: [es.jwk] }))
    const later = keyed({ jwks: undefined, jwks_uri }, new URL('/later', mine.client_id).href)
    const code = await codeOf(later)
    asked.length = 0
    for (let n = 0; n < 31; n++) {
      app.context.documents.clear()
      expect(await refresh()).toBe(200)
    }
    expect(calls(mine)).toBe(30)
    expect((await ask(code, await assert(later))).status).toBe(200)
  })

  test('CMD-12 strangers cause neither a call nor a stored assertion', async () => {
    const mine = keyed()
    await codeOf(mine)
    const theirs = keyed()
    const before = await unused()
    app.clock.advance(2 * DAY)
    asked.length = 0
    for (const fields of [
      { ...(await codeOf(theirs)), code: 'unknown' },
      await codeOf(theirs),
      { grant_type: 'refresh_token', refresh_token: 'unknown' },
      { grant_type: 'client_credentials' },
    ])
      expect((await ask(fields, await assert(mine))).body.error).toBe('invalid_grant')
    expect([calls(mine), await unused()]).toEqual([0, before])
  })
})

describe('CMD-09 a client that signs is not blocked as a guesser', () => {
  const ip = '203.0.113.9'
  const open_client = { token_endpoint_auth_method: 'none', jwks: undefined }

  /** True when a refresh of a public client from the same network is answered. */
  const isServed = async (fields: Json) =>
    (await ask({ grant_type: 'refresh_token', ...fields }, undefined, '/oauth/token', ip)).status === 200
  const publicSession = async () => {
    const { client_id } = keyed(open_client)
    const { body } = await ask({ ...(await codeOf(keyed(open_client, client_id))), client_id })
    return { client_id, refresh_token: body.refresh_token }
  }

  test('CMD-09 when it revokes access tokens', async () => {
    const mine = keyed()
    const { body } = await ask(await codeOf(mine), await assert(mine))
    for (let i = 0; i < 40; i++)
      await ask({ token: body.access_token }, await assert(mine), '/oauth/revoke', ip)
    expect(await isServed(await publicSession())).toBe(true)
  })

  test('CMD-09 when it redeems a code that a wrong verifier has made unusable', async () => {
    const mine = keyed()
    const fields = await codeOf(mine)
    const wrong = { ...fields, code_verifier: 'x'.repeat(43) }
    expect((await ask(wrong, await assert(mine))).body.error).toBe('invalid_grant')
    for (let i = 0; i < 40; i++)
      expect((await ask(fields, await assert(mine), '/oauth/token', ip)).body.error).toBe('invalid_grant')
    expect(await isServed(await publicSession())).toBe(true)
  })

  test('CMD-09 when it redeems codes of a user who was disabled', async () => {
    const mine = keyed()
    const username = await person()
    const fields = await codeOf(mine, username)
    const found = await app.admin('GET', `/users?search=${username}`)
    await app.admin('PUT', `/users/${found.body.data[0].id}`, { enabled: false })
    for (let i = 0; i < 40; i++)
      expect((await ask(fields, await assert(mine), '/oauth/token', ip)).body.error).toBe('invalid_grant')
    expect(await isServed(await publicSession())).toBe(true)
  })
})
