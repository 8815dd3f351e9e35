import { expect, test } from 'bun:test'
import { methodTable } from '#src/http/method-table.ts'
import { elysiaRouter } from '#src/http/router.ts'
import { type Matched, mount } from '#src/http/routes.ts'

test('a mounted handler gets the unread body and the decoded path parameters', async () => {
  const tell = async ({ request, params }: Matched) =>
    Response.json({ used: request.bodyUsed, params, body: await request.text() })
  // Elysia reads the source of handlers. When a handler passes on its whole argument, Elysia parses the body.
  const routes = mount({ 'POST /things/:id': matched => tell(matched) })
  const handle = elysiaRouter(routes, () => Response.error())
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain']) {
    const headers = { 'content-type': type }
    const request = new Request('http://localhost/things/a%20b', { method: 'POST', headers, body: '{"a":' })
    const answer = await handle(request)
    expect(await answer.json()).toEqual({ used: false, params: { id: 'a b' }, body: '{"a":' })
  }
})

test('O-71 a path without parameters has its own methods, although a pattern that comes first matches it', () => {
  const handle = () => new Response()
  const table = methodTable(
    mount({ 'GET /things/:id': handle, 'DELETE /things/:id': handle, 'POST /things/all': handle }),
  )
  const methodsOf = (path: string) => [...(table.find(({ pattern }) => pattern.test(path))?.methods ?? [])]
  expect(methodsOf('/things/all')).toEqual(['POST'])
  expect(methodsOf('/things/one')).toEqual(['GET', 'HEAD', 'DELETE'])
  expect(methodsOf('/things/one/all')).toEqual([])
})
