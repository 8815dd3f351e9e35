import { expect, test } from 'bun:test'
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
