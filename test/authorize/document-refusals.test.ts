/** Tests metadata documents that cannot be used, and the limits on the calls that fetch documents. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { publishedIds } from '#src/protocol/oauth/published-documents.ts'
import { addUser } from '#test/support/people.ts'
import { documentWorld, json, request, WEB } from './document-world.ts'

const { answerWith, app, asked, giveUp, logIn, open, publish, stored } = await documentWorld()

/** Each test has a new user, because the server limits the fetched documents by user. */
let people = 0
const person = async () => {
  const username = `person${++people}`
  await addUser(app, username)
  return username
}
const isPage = ({ status, location }: { status: number; location?: string | undefined }) => [status, location]

beforeEach(async () => {
  app.clock.advance(HOUR)
  app.context.documents.clear()
  asked.length = 0
  await app.events()
})

test('CMD-05 a denial after max_age has passed goes only to a redirect URI of the document', async () => {
  const denial = async (redirect_uri: string) => {
    const client = publish()
    const { browser } = await open(client, {}, await person())
    const page = await browser.get(request(client, { max_age: '60' }))
    publish({ redirect_uris: [redirect_uri] }, {}, client.client_id)
    app.context.documents.clear()
    app.clock.advance(61 * SECOND)
    const { status, location } = await browser.submit(page, { decision: 'deny' }, '/oauth/consent')
    return [status, location?.replace(/&.*/, '')]
  }
  expect(await denial(WEB)).toEqual([302, `${WEB}?error=access_denied`])
  expect(await denial('https://agent.example/moved')).toEqual([400, undefined])
})

describe('CMD-05 a document that cannot be used ends in a page', () => {
  const refused = async (client_id: string) => {
    const { page } = await open({ client_id }, {}, await person())
    expect(isPage(page)).toEqual([400, undefined])
    expect(page.html).not.toContain('/oauth/consent')
    expect(await stored()).not.toContain(client_id)
    expect((await app.events()).map(({ type }) => type).filter(type => type.startsWith('client.'))).toEqual(
      [],
    )
  }

  const key = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }
  test.each<[string, object]>([
    ['names another client_id', { client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata' }],
    ['names its id with a port', { client_id: 'https://bad2.example:443/client.json' }],
    ['holds a secret', { client_secret: 'secret' }],
    ['holds the end of a secret', { client_secret_expires_at: 0 }],
    ['holds a private key', { jwks: { keys: [{ ...key, d: 'd' }] } }],
    ['holds a symmetric key', { jwks: { keys: [{ kty: 'oct', k: 'k' }] } }],
    ['needs a secret', { token_endpoint_auth_method: 'client_secret_basic' }],
    ['has jwks and jwks_uri', { jwks: { keys: [key] }, jwks_uri: 'https://bad.example/keys' }],
    ['has keys over http', { jwks_uri: 'http://bad.example/keys' }],
    ['has keys at a URL with a user', { jwks_uri: 'https://user@bad.example/keys' }],
    ['has keys of a scheme that runs', { jwks_uri: 'javascript:alert(1)' }],
    [
      'needs an algorithm that is unknown',
      {
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'HS256',
        jwks: { keys: [key] },
      },
    ],
    ['needs a key', { token_endpoint_auth_method: 'private_key_jwt' }],
    ['has no redirect URI', { redirect_uris: [] }],
    ['has no list of redirect URIs', { redirect_uris: WEB }],
    ['has too many redirect URIs', { redirect_uris: Array.from({ length: 11 }, (_, i) => `${WEB}/${i}`) }],
    ['has a javascript: URI', { redirect_uris: [WEB, 'javascript:alert(1)'] }],
    ['has a data: URI', { redirect_uris: [WEB, 'data:text/html,x'] }],
    ['has plain http', { redirect_uris: [WEB, 'http://agent.example/'] }],
    ['has a wildcard', { redirect_uris: [WEB, 'https://*.agent.example/'] }],
    ['has a name of two lines', { client_name: 'a\nb' }],
    ['has a long name', { client_name: 'a'.repeat(129) }],
    ['wants the client credentials alone', { grant_types: ['client_credentials'] }],
    ['wants tokens in the answer', { response_types: ['token'] }],
    ['has more than 5 KiB', { filler: 'a'.repeat(5 * 1024) }],
  ])('CMD-05 it %s', async (_name, more) => {
    const client_id = nextId()
    publish(more, {}, client_id)
    await refused(client_id)
  })

  let ids = 0
  const nextId = () => `https://bad${++ids}.example/client.json`
  const answers: Record<string, (request: Request) => Response | Promise<Response>> = {
    'it does not come in time': () => {
      giveUp()
      return new Promise<Response>(() => {})
    },
    'it redirects': () => Response.redirect(`https://claude.ai/`, 302),
    'it is another type': () => new Response('{}', { headers: { 'content-type': 'text/html' } }),
    'it has no type': () => new Response(new TextEncoder().encode('{}')),
    'it is a text': json('"text"'),
    'it is a list': json('[]'),
    'it is null': json('null'),
    'it is not JSON': json('{'),
    'it has many levels': json('['.repeat(65)),
    'it is an error': () => Response.json({}, { status: 403 }),
    'it is not changed, without a first answer': () => new Response(null, { status: 304 }),
  }
  test.each(Object.keys(answers))('CMD-05 %s', async name => {
    const client_id = name.includes('in time') ? 'https://slow.example/client.json' : nextId()
    answerWith(client_id, answers[name] ?? json(''))
    await refused(client_id)
    expect(asked).toEqual([client_id])
  })

  test.each([
    'https://127.0.0.1/client.json',
    'https://localhost/client.json',
    'https://[::1]/client.json',
    'https://10.0.0.1/client.json',
    'https://169.254.169.254/latest',
    'https://2130706433/client.json',
    'https://[::ffff:127.0.0.1]/client.json',
  ])('CMD-05 %s points to a private address', client_id => refused(client_id))

  test('CMD-05 unknown members, grants and scopes are left out', async () => {
    const client = publish({
      scope: 'admin users:read',
      grant_types: [
        'authorization_code',
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:jwt-bearer',
      ],
      response_types: ['code', 'token'],
      application_type: 'other',
      logo_uri: 'javascript:alert(1)',
      jwks: { keys: [key] },
    })
    const { answer, page } = await logIn(client, { scope: 'openid users:read' }, await person())
    expect(answer.code).toBeString()
    expect(page.html).not.toContain('javascript:')
    const [row] = await app.context.store.read(q => q.select().from(q.tables.dynamic_clients))
    expect(row?.registration).toMatchObject({
      redirect_uris: [WEB],
      grant_types: ['authorization_code'],
      token_endpoint_auth_method: 'none',
    })
  })
})

describe('CMD-06 a document is kept in memory', () => {
  /** Checks that a document with these headers is kept for `minutes` and then requested again. */
  const keptFor = async (headers: Record<string, string>, minutes: number) => {
    app.context.documents.clear()
    asked.length = 0
    const username = await person()
    const client = publish({}, headers)
    const { browser } = await logIn(client, {}, username)
    const askedAfter = async (ms: number) => {
      app.clock.advance(ms)
      await browser.get(request(client))
      return asked.length
    }
    expect([headers, await askedAfter(minutes * MINUTE - SECOND)]).toEqual([headers, 1])
    expect([headers, await askedAfter(SECOND)]).toEqual([headers, 2])
  }

  test('CMD-06 for a minute to a day, as its headers say', async () => {
    await keptFor({}, 60)
    await keptFor({ 'cache-control': 'max-age=600' }, 10)
    await keptFor({ 'cache-control': 'max-age=600, s-maxage=1200' }, 20)
    await keptFor({ 'cache-control': 'no-store' }, 1)
    await keptFor({ 'cache-control': 'max-age=1' }, 1)
    await keptFor({ expires: new Date(app.clock.now() + 30 * MINUTE).toUTCString() }, 30)
  })

  test('CMD-06 for a day at most', async () => {
    const client = publish({}, { 'cache-control': 'max-age=31536000' })
    const username = await person()
    await logIn(client, {}, username)
    app.clock.advance(DAY)
    await open(client, {}, username)
    expect(asked.length).toBe(2)
  })

  test('CMD-06 and asked for again with its validators', async () => {
    const client = publish()
    const seen: (string | null)[] = []
    answerWith(client.client_id, ({ headers }) => {
      seen.push(headers.get('if-none-match'))
      return seen.length === 1
        ? Response.json(client, { headers: { etag: '"1"' } })
        : new Response(null, { status: 304 })
    })
    const { browser } = await logIn(client, {}, await person())
    for (let i = 0; i < 2; i++) {
      app.clock.advance(2 * HOUR)
      expect((await browser.get(request(client))).location).toContain('code=')
    }
    expect(seen).toEqual([null, '"1"', '"1"'])
  })

  test('CMD-06 when it is gone no older copy is used, and the failure is remembered for a minute', async () => {
    const client = publish()
    const { browser } = await logIn(client, {}, await person())
    answerWith(client.client_id, () => new Response(null, { status: 500 }))
    app.clock.advance(2 * HOUR)
    for (let i = 0; i < 3; i++) expect(isPage(await browser.get(request(client)))).toEqual([400, undefined])
    expect(asked.length).toBe(2)
    publish({}, {}, client.client_id)
    app.clock.advance(MINUTE)
    expect((await browser.get(request(client))).location).toContain('code=')
  })

  test('CMD-06 a failure while the clock was ahead is forgotten when the clock is set back', async () => {
    const client = publish()
    answerWith(client.client_id)
    app.clock.advance(DAY)
    expect((await open(client, {}, await person())).page.status).toBe(400)
    app.clock.advance(-DAY)
    answerWith(client.client_id, json(client))
    expect((await open(client, {}, await person())).page.html).toContain('/oauth/consent')
  })

  test('CMD-06 the copy in the executable is used instead, and changes no stored client', async () => {
    const client_id = 'https://claude.ai/oauth/claude-code-client-metadata'
    const redirect_uris = ['https://claude.ai/moved', 'http://localhost/callback']
    const client = publish({ client_name: 'Claude', redirect_uris }, {}, client_id)
    const username = await person()
    const redirect_uri = 'http://localhost:3118/callback'
    await logIn(client, { redirect_uri }, username)
    await app.events()
    for (const status of [403, 304]) {
      app.clock.advance(2 * HOUR)
      answerWith(client_id, () => new Response(null, { status }))
      const { page } = await open(client, { redirect_uri: 'https://claude.ai/moved' }, username)
      expect(page.location).toContain('code=')
    }
    expect((await app.events()).map(({ type }) => type)).not.toContain('client.metadata_changed')
    const changed = publish({ client_name: 'Claude', redirect_uris: [redirect_uri] }, {}, client_id)
    app.clock.advance(2 * HOUR)
    await logIn(changed, { redirect_uri }, username)
    expect((await app.events()).map(({ type }) => type)).toContain('client.metadata_changed')
    answerWith(client_id)
  })

  test('CMD-06 two people who come at once cause one call', async () => {
    const client = publish()
    const gate = Promise.withResolvers<void>()
    const came = Promise.withResolvers<void>()
    answerWith(client.client_id, async () => {
      came.resolve()
      await gate.promise
      return Response.json(client)
    })
    const first = open(client, {}, await person())
    await came.promise
    const second = open(client, {}, await person())
    gate.resolve()
    for (const { page } of [await first, await second]) expect(page.html).toContain('/oauth/consent')
    expect(asked).toEqual([client.client_id])
  })
})

describe('CMD-07 calls for documents are bounded', () => {
  test('CMD-07 by person, and by origin', async () => {
    const victim = (i: number) => ({ client_id: `https://victim.example/${i}` })
    const [one, other] = [await person(), await person()]
    const { browser } = await open(victim(0), {}, one)
    for (let i = 1; i < 100; i++) await browser.get(request(victim(i)))
    expect(asked.length).toBe(20)
    expect((await browser.get(request(victim(100)))).status).toBe(429)
    const { browser: second } = await open(victim(200), {}, other)
    for (let i = 201; i < 300; i++) await second.get(request(victim(i)))
    expect(asked.length).toBe(30)
    const elsewhere = publish()
    expect((await second.follow(await second.get(request(elsewhere)))).html).toContain('/oauth/consent')
  })

  test('CMD-07 at most four at a time to one origin, and sixteen in all', async () => {
    const gate = Promise.withResolvers<void>()
    const browsers = await Promise.all(
      Array.from({ length: 18 }, async () => (await open(publish(), {}, await person())).browser),
    )
    app.context.documents.clear()
    app.clock.advance(HOUR)
    asked.length = 0
    const waiting: Promise<unknown>[] = []
    const start = async (i: number, host: string) => {
      const client_id = `https://${host}.example/slow${i}`
      const began = Promise.withResolvers<'began'>()
      answerWith(client_id, async () => {
        began.resolve('began')
        await gate.promise
        return new Response(null, { status: 404 })
      })
      const answer = browsers[i]?.get(request({ client_id }))
      if (answer) waiting.push(answer)
      const first = await Promise.race([began.promise, answer])
      return typeof first === 'object' ? first.status : first
    }
    for (let i = 0; i < 4; i++) expect(await start(i, 'one')).toBe('began')
    expect(await start(4, 'one')).toBe(503)
    for (let i = 5; i < 17; i++) expect(await start(i, `host${i}`)).toBe('began')
    expect(await start(17, 'last')).toBe(503)
    gate.resolve()
    await Promise.all(waiting)
    expect(asked.length).toBe(16)
  })

  test('CMD-07 a thousand are kept', async () => {
    const { documents } = app.context
    for (let i = 0; i < 1_000; i++)
      documents.set(`document org_default https://a.example/${i}`, {
        origin: 'https://a.example',
        found: Promise.resolve(undefined),
        has_failed: false,
        expires_at: app.clock.now() + HOUR,
        asked_at: app.clock.now(),
        read_at: app.clock.now(),
        validators: {},
      })
    const { page } = await open(publish(), {}, await person())
    expect(page.html).toContain('/oauth/consent')
    expect(documents.size).toBe(1_000)
    expect(documents.has('document org_default https://a.example/0')).toBe(false)
  })
})

test.each(publishedIds)('CMD-08 %s signs in without the network', async client_id => {
  const redirects: Record<string, string> = {
    'https://claude.ai/oauth/mcp-oauth-client-metadata': 'https://claude.ai/api/mcp/auth_callback',
    'https://claude.ai/oauth/claude-code-client-metadata': 'http://localhost:3118/callback',
    'https://chatgpt.com/oauth/client.json': 'https://chatgpt.com/connector_platform_oauth_redirect',
    'https://chatgpt.com/oauth/codex/client.json': 'http://127.0.0.1:1455/callback',
    'https://vscode.dev/oauth/client-metadata.json': 'http://127.0.0.1:33419/',
    'https://zed.dev/oauth/client-metadata.json': 'http://127.0.0.1:5000/callback',
    'https://opencode.ai/oauth/opencode/client.json': 'http://localhost:19876/callback',
  }
  const { answer } = await logIn({ client_id }, { redirect_uri: redirects[client_id] }, await person())
  expect(answer.code).toBeString()
})
