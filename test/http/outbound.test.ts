import { afterAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Outbound } from '#src/context.ts'
import { isAllowed, isPublic, OutboundError, outboundFetch } from '#src/http/outbound.ts'

const hits: string[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: async request => {
    const { pathname, host } = new URL(request.url)
    hits.push(pathname)
    if (pathname === '/hang') return new Promise<Response>(() => {})
    if (pathname === '/drip')
      return new Response(new ReadableStream({ start: controller => controller.enqueue(new Uint8Array(10)) }))
    if (pathname === '/deep') return new Response(` ${'['.repeat(65)}`)
    if (pathname === '/nested') return new Response(`${'['.repeat(64)}"[[\\"[["${']'.repeat(64)}`)
    if (pathname === '/huge') return new Response(new Uint8Array(200))
    if (pathname === '/away') return Response.redirect('http://169.254.169.254/latest', 302)
    return Response.json({
      host,
      method: request.method,
      type: request.headers.get('content-type'),
      packed: request.headers.get('accept-encoding'),
      body: await request.text(),
    })
  },
})
afterAll(() => server.stop(true))

const home = `http://127.0.0.1:${server.port}`
const allowed = { outbound_allow: [`127.0.0.1:${server.port}`] }
const organization = { id: 'org_default', slug: 'default' } as const
const acme = { id: 'org_1', slug: 'acme' } as const
type Init = Parameters<Outbound>[1]
/** Returns a function that makes calls for the default organization. */
const outbound =
  (...settings: Parameters<typeof outboundFetch>) =>
  (url: string, init: Partial<Init> = {}) =>
    outboundFetch(...settings)(url, { organization, ...init })
const open = outbound(allowed)

test('an allowed host is called with method, headers and body', async () => {
  const answer = await open(`${home}/echo`, {
    method: 'POST',
    body: new URLSearchParams({ a: 'b c' }),
    headers: { accept: 'application/json' },
  })
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({
    host: `127.0.0.1:${server.port}`,
    method: 'POST',
    type: 'application/x-www-form-urlencoded',
    packed: 'identity',
    body: 'a=b+c',
  })
})

describe('R-21 a slow, huge or redirecting upstream', () => {
  const refusal = async (call: Promise<Response>): Promise<string> => {
    const error = await call.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(OutboundError)
    expect((error as OutboundError).message).toBe(
      'The call to the other server is not allowed or got no complete answer in time.',
    )
    return ((error as OutboundError).cause as Error).message
  }

  test('JSON nested more than 64 levels is refused', async () => {
    expect(await refusal(open(`${home}/deep`))).toContain('levels')
    expect((await open(`${home}/nested`)).status).toBe(200)
  })

  test('RUN-21 private addresses and plain http are never called unless configured', async () => {
    const closed = outbound({ outbound_allow: [] })
    const before = hits.length
    expect(await refusal(closed(`${home}/echo`))).toContain('https')
    for (const host of ['127.0.0.1', '[::1]', '10.0.0.1', '0x7f.1', '[::ffff:10.0.0.1]', '169.254.169.254'])
      expect(await refusal(closed(`https://${host}:${server.port}/echo`))).toContain('private')
    expect(hits.length).toBe(before)
  })

  test('a name that resolves to a private address is refused, and is resolved once', async () => {
    let lookups = 0
    const resolve = async () => {
      lookups++
      return [{ address: lookups === 1 ? '10.1.2.3' : '93.184.216.34', family: 4 }]
    }
    const closed = outbound({ outbound_allow: [] }, { resolve })
    expect(await refusal(closed('https://rebind.example/'))).toContain('private')
    expect(lookups).toBe(1)
  })

  test('RUN-22 the connection goes to the checked address, under the requested name', async () => {
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const pinned = outbound({ outbound_allow: [`idp.internal:${server.port}`] }, { resolve })
    const answer = (await (await pinned(`http://idp.internal:${server.port}/echo`)).json()) as {
      host: string
    }
    expect(answer.host).toBe(`idp.internal:${server.port}`)
  })

  test('an answer that is late or incomplete is abandoned, in the head and in the body', async () => {
    const hasty = outbound(allowed, { timeout: 20 })
    expect(await refusal(hasty(`${home}/hang`))).toContain('in time')
    expect(await refusal(hasty(`${home}/drip`))).toContain('in time')
    const stuck = outbound(allowed, { timeout: 20, resolve: () => new Promise(() => {}) })
    expect(await refusal(stuck('https://never.example/'))).toContain('in time')
  })

  test('a call that was given up while the name was looked up makes no connection', async () => {
    let connections = 0
    const counting = createServer(socket => {
      connections++
      socket.on('error', () => {})
      socket.end()
    })
    await once(counting.listen(0, '127.0.0.1'), 'listening')
    const { port } = counting.address() as AddressInfo
    const found = Promise.withResolvers<{ address: string; family: number }[]>()
    const names = { outbound_allow: [`idp.internal:${port}`, `127.0.0.1:${port}`] }
    const slow = outbound(names, { timeout: 20, resolve: () => found.promise })
    expect(await refusal(slow(`http://idp.internal:${port}/`))).toContain('in time')
    found.resolve([{ address: '127.0.0.1', family: 4 }])
    await refusal(outbound(names)(`http://127.0.0.1:${port}/`))
    expect(connections).toBe(1)
    counting.close()
  })

  test('a caller can set a shorter limit', async () => {
    const stop = new AbortController()
    const call = open(`${home}/hang`, { signal: stop.signal })
    stop.abort()
    expect(await refusal(call)).toContain('aborted')
  })

  test('an answer over the limit', async () => {
    expect(await refusal(outbound(allowed, { bytes: 100 })(`${home}/huge`))).toContain('larger')
    expect((await outbound(allowed, { bytes: 200 })(`${home}/huge`)).status).toBe(200)
  })

  const floods = {
    'interim answers': 'HTTP/1.1 103 Early Hints\r\n\r\n',
    'empty lines': '\r\n',
  }
  for (const [name, unit] of Object.entries(floods))
    test(`RUN-37 an answer that begins with endless ${name}`, async () => {
      const flood = Buffer.from(unit.repeat(4096))
      const endless = createServer(socket => {
        const send = () => {
          while (socket.write(flood));
        }
        socket.on('error', () => {})
        socket.on('drain', send)
        socket.once('data', send)
      })
      await once(endless.listen(0, '127.0.0.1'), 'listening')
      const target = `127.0.0.1:${(endless.address() as AddressInfo).port}`
      expect(await refusal(outbound({ outbound_allow: [target] })(`http://${target}/`))).toContain('larger')
      endless.close()
    })

  test('a redirect is not followed', async () => {
    const answer = await open(`${home}/away`)
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'http://169.254.169.254/latest'])
  })
})

test('which addresses are public', () => {
  const table: Record<string, boolean> = {
    '93.184.216.34': true,
    '100.64.0.1': false,
    '172.31.255.255': false,
    '172.32.0.1': true,
    '192.0.2.1': false,
    '224.0.0.1': false,
    '255.255.255.255': false,
    '2606:2800:220:1::1': true,
    '::': false,
    '::1': false,
    'fc00::1': false,
    'fe80::1': false,
    '64:ff9b::a00:1': false,
    '::ffff:8.8.8.8': false,
    '2002:a00:1::': false,
    '2001:db8::1': false,
    'no address': false,
  }
  expect(Object.fromEntries(Object.keys(table).map(address => [address, isPublic(address)]))).toEqual(table)
})

describe('H-15 outbound_allow', () => {
  test('RUN-20 names host and port, for the default organization or for one tenant', () => {
    const names = (entry: string, url: string, as: Init['organization'] = organization) =>
      isAllowed({ outbound_allow: [entry] }, new URL(url), as)
    expect(names('idp.internal:443', 'https://idp.internal/x')).toBe(true)
    expect(names('idp.internal:8443', 'https://idp.internal/x')).toBe(false)
    expect(names('idp.internal:443', 'https://idp.internal:8443/x')).toBe(false)
    expect(names('idp.internal:80', 'http://IDP.internal/x')).toBe(true)
    expect(names('internal:443', 'https://idp.internal/x')).toBe(false)
    expect(names('[::1]:9000', 'http://[::1]:9000/x')).toBe(true)
    expect(names('idp.internal:443', 'https://idp.internal/x', acme)).toBe(false)
    expect(names('acme=idp.internal:443', 'https://idp.internal/x', acme)).toBe(true)
    expect(names('acme=idp.internal:443', 'https://idp.internal/x')).toBe(false)
    expect(names('default=idp.internal:443', 'https://idp.internal/x')).toBe(true)
    expect(names('idp.internal:443', 'https://idp.internal/x', { ...acme, slug: 'idp.internal' })).toBe(false)
  })

  test('a tenant does not reach hosts opened for the default organization', async () => {
    const before = hits.length
    await expect(open(`${home}/echo`, { organization: acme })).rejects.toBeInstanceOf(OutboundError)
    expect(hits.length).toBe(before)
    const theirs = outbound({ outbound_allow: [`acme=127.0.0.1:${server.port}`] })
    expect((await theirs(`${home}/echo`, { organization: acme })).status).toBe(200)
  })

  test('one error for hosts that are not allowed, closed, not HTTP or too slow', async () => {
    const silent = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { open: socket => void socket.end('no HTTP\n'), data() {} },
    })
    const ports = [server.port, silent.port, 1]
    const some = outbound({ outbound_allow: ports.map(port => `127.0.0.1:${port}`) }, { timeout: 200 })
    const errors = await Promise.all(
      [
        `${home}/hang`,
        `http://127.0.0.1:${silent.port}`,
        'http://127.0.0.1:1',
        'http://127.0.0.1:2',
        'https://no.invalid',
        'no address',
      ].map(url => some(url).catch((error: Error) => `${error.name}: ${error.message}`)),
    )
    silent.stop(true)
    expect(new Set(errors)).toEqual(
      new Set([
        'OutboundError: The call to the other server is not allowed or got no complete answer in time.',
      ]),
    )
  })
})
