import { expect, test } from 'bun:test'
import { readForm, readJson } from '#src/http/body.ts'

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
