/** Compares the answers to HEAD and GET, over real sockets. */
import { afterAll, describe, expect, test } from 'bun:test'
import { listen } from '#src/cli/listen.ts'
import { openLogger } from '#src/lib/log.ts'
import { ADMIN_SECRET, type Json, startApp } from '#test/support/app.ts'
import { developmentOf } from '#test/support/development.ts'
import { askRaw } from '#test/support/socket.ts'
import { until } from '#test/support/until.ts'

// The first import runs the bundler, which can take longer than the server waits.
await import('#src/console/files.ts')
const lines: Json[] = []
const log = openLogger('info', line => void lines.push(JSON.parse(line)))
const app = await startApp({ port: 0 }, { log })
const served = listen(app.context.config, log, app.fetch)
const dev = listen(app.context.config, log, developmentOf(app.context, app.fetch))
afterAll(async () => {
  await Promise.all([served.stop(), dev.stop()])
})
const bearer = `Authorization: Bearer ${await app.tokenOf('gatehouse-admin', ADMIN_SECRET)}`
const html = 'Accept: text/html'
const { etag = '' } = (await app.call('/.well-known/jwks.json')).headers.toJSON()

/** Sends a request. Returns the answer with the headers that do not change from request to request. */
const ask = async (port: number, line: string, headers: string[] = []) => {
  const answer = await askRaw(port, [`${line} HTTP/1.1`, ...headers])
  const { date: _, 'x-request-id': request_id, ...same } = answer?.headers.toJSON() ?? {}
  return { status: answer?.status, headers: same, body: answer?.body, request_id }
}

/** Path, status, port and headers of each request. */
const requests: [string, number, number, ...string[]][] = [
  ['/healthz', 200, served.port],
  ['/robots.txt', 200, served.port],
  ['/.well-known/jwks.json', 200, served.port],
  ['/.well-known/jwks.json', 304, served.port, `If-None-Match: ${etag}`],
  ['/.well-known/openid-configuration', 200, served.port],
  ['/', 303, served.port],
  ['/favicon.ico', 200, served.port],
  ['/console', 200, served.port],
  ['/api/v1/openapi.json', 200, served.port],
  ['/api/v1/admin/users', 200, served.port, bearer],
  ['/api/v1/admin/users', 401, served.port],
  ['/nowhere', 404, served.port],
  ['/nowhere', 404, served.port, html],
  ['/%E0%A4%A', 404, served.port],
  ['/oauth/token', 405, served.port],
  ['/oauth/token', 405, served.port, html],
  ['/guide', 200, dev.port],
  ['/healthz', 200, dev.port],
]

describe('O-71 HEAD has the status and the headers of GET, and no body', () => {
  test.each(requests)('%s: %d', async (path, status, port, ...headers) => {
    const { request_id: _, ...get } = await ask(port, `GET ${path}`, headers)
    expect(get.status).toBe(status)
    lines.length = 0
    const { request_id, ...head } = await ask(port, `HEAD ${path}`, headers)
    expect(head).toEqual({ ...get, body: '' })
    expect(lines).toEqual(
      request_id ? [expect.objectContaining({ request_id, method: 'HEAD', path, status })] : [],
    )
  })

  test('EVT-23 a stream of events is closed at once', async () => {
    lines.length = 0
    const path = '/api/v1/admin/events/stream'
    const { request_id, ...head } = await ask(served.port, `HEAD ${path}`, [bearer])
    expect(head).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' },
      body: '',
    })
    expect(lines).toEqual([expect.objectContaining({ request_id, method: 'HEAD', path, status: 200 })])
    await until(() => app.context.tails.open.size === 0)
  })
})
