import { describe, expect, test } from 'bun:test'
import { readForm, readJson, readUpload } from '#src/http/body.ts'
import { ADMIN_SECRET, startApp } from '#test/support/app.ts'

test.each([
  ['application/x-www-form-urlencoded', readForm],
  ['application/json', readJson],
])('O-57 %s that ends early is reported as the sender’s error', async (type, read) => {
  for (const headers of [{}, { 'content-length': '100' }]) {
    const body = new ReadableStream({
      pull: controller => controller.error(new DOMException('The connection was closed.', 'AbortError')),
    })
    const request = new Request('http://localhost', {
      method: 'POST',
      body,
      headers: { ...headers, 'content-type': type },
    })
    await expect(Promise.resolve(read(request))).rejects.toMatchObject({ code: 'invalid_request' })
  }
})

test.each([
  ['application/x-www-form-urlencoded', (request: Request) => readForm(request, undefined, 1)],
  ['application/json', (request: Request) => readJson(request, 1)],
])('H-11 %s that does not end is 408, and the connection is closed', async (type, read) => {
  for (const headers of [{}, { 'content-length': '100' }]) {
    const body = new ReadableStream({
      start: controller => controller.enqueue(new TextEncoder().encode('{')),
    })
    const request = new Request('http://localhost', {
      method: 'POST',
      body,
      headers: { ...headers, 'content-type': type },
    })
    await expect(read(request)).rejects.toMatchObject({
      code: 'request_timeout',
      status: 408,
      headers: { connection: 'close' },
    })
  }
})

test.each([
  ['another boundary', 'multipart/form-data; boundary=other', '--this\r\n\r\nx\r\n--this--'],
  ['no boundary', 'multipart/form-data', '--this--'],
])('a complete form with %s is not reported as one that ended early', async (_case, type, body) => {
  const request = new Request('http://localhost', { method: 'POST', body, headers: { 'content-type': type } })
  await expect(readUpload(request)).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'The request body is not a valid form.',
  })
})

const posted = (type: string, body: BodyInit, headers: Record<string, string> = {}) =>
  new Request('http://localhost', { method: 'POST', body, headers: { ...headers, 'content-type': type } })

describe('API-16 a body has at most the bytes of its limit', () => {
  const field = 'content-disposition: form-data; name="a"'
  test.each([
    ['a form', 64, 'application/x-www-form-urlencoded', ['a=', ''], readForm],
    ['JSON', 1024, 'application/json', ['"', '"'], readJson],
    [
      'a form with files',
      1024,
      'multipart/form-data; boundary=b',
      [`--b\r\n${field}\r\n\r\n`, '\r\n--b--\r\n'],
      readUpload,
    ],
  ] as const)('%s: %d KiB', async (_, limit, type, [head, tail], read) => {
    const sized = (bytes: number) => `${head}${'x'.repeat(bytes - head.length - tail.length)}${tail}`
    for (const isAnnounced of [true, false]) {
      const ask = async (bytes: number) =>
        read(posted(type, sized(bytes), isAnnounced ? { 'content-length': String(bytes) } : {}))
      await ask(limit * 1024)
      await expect(ask(limit * 1024 + 1)).rejects.toMatchObject({
        code: 'payload_too_large',
        status: 413,
        message: `The request body is larger than the ${limit} KiB allowed here.`,
      })
    }
  })
})

test('a body that is not UTF-8 is 400, and a byte order mark is not removed', async () => {
  const form = 'Application/X-WWW-Form-URLEncoded; charset=utf-8'
  await expect(readForm(posted(form, new Uint8Array([0x61, 0x3d, 0xff])))).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'The request body is not valid UTF-8.',
  })
  expect(await readForm(posted(form, '\ufeffa=b'))).toBe('\ufeffa=b')
})

test('API-09 a body that is or claims to be compressed is 415 and stores nothing; other codings are ignored', async () => {
  const app = await startApp()
  const token = await app.tokenOf('gatehouse-admin', ADMIN_SECRET)
  const post = async (body: BodyInit, coding: string) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-encoding': coding,
    }
    const answer = await app.call('/api/v1/admin/roles', { method: 'POST', headers, body })
    return { answer, body: await answer.json() }
  }
  const role = JSON.stringify({ name: 'editor', permissions: [] })
  await app.events()
  for (const [sent, coding] of [
    [Bun.gzipSync(role), 'gzip'],
    [role, 'gzip'],
    [role, 'identity, br'],
    ...['compress', 'deflate', 'zstd', 'dcb', 'dcz'].map(coding => [role, coding] as const),
  ] as const) {
    const { answer, body } = await post(sent, coding)
    expect([coding, answer.status, body.error, body.error_description]).toEqual([
      coding,
      415,
      'unsupported_media_type',
      'The body must not be compressed (Content-Encoding).',
    ])
    expect(answer.headers.get('accept-encoding')).toBe('identity')
  }
  expect(await app.events()).toEqual([])
  const ignored = ['', 'Identity', 'identity, identity', 'utf-8', 'UTF-8']
  for (const [i, coding] of ignored.entries())
    expect([coding, (await post(role.replace('editor', `editor-${i}`), coding)).answer.status]).toEqual([
      coding,
      201,
    ])
  expect((await app.events()).map(({ type }) => type)).toEqual(ignored.map(() => 'role.created'))
})
