import type { Context } from '#src/context.ts'
import type { Json, TestApp } from './app.ts'
import { type Running, SECRET } from './executable.ts'

/** A running executable as browsers and helpers of the suite know an app: at its socket, whatever its public address is. */
export const remote = (
  server: Running,
  { scheme = 'http', secret = SECRET }: { scheme?: 'http' | 'https'; secret?: string } = {},
): Pick<TestApp, 'call' | 'admin' | 'context'> => {
  const call: TestApp['call'] = (path, { ip: _, ...init } = {}) =>
    fetch(new URL(path, `${scheme}://127.0.0.1:${server.port}`), {
      redirect: 'manual',
      tls: { rejectUnauthorized: false },
      ...init,
    })
  let token = ''
  const admin: TestApp['admin'] = async (method, path, body) => {
    token ||= await tokenOf(call, secret)
    const answer = await call(`/api/v1/admin${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text ? JSON.parse(text) : undefined, headers: answer.headers }
  }
  return { call, admin, context: { config: { url: server.url } } as Context }
}

/** The first admin client's token; empty when the secret is refused. */
export const tokenOf = async (call: TestApp['call'], client_secret: string): Promise<string> => {
  const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret }
  const answer = await call('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })
  return ((await answer.json()) as Json).access_token ?? ''
}
