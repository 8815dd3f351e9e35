import type { Json, TestApp } from './app.ts'

type Call = (path: string, init?: RequestInit) => Promise<Response>

/** Calls the admin API with a JSON body, or with raw text. */
export const adminCall = async (
  call: Call,
  token: string,
  ...[method, path, body]: Parameters<TestApp['admin']>
): ReturnType<TestApp['admin']> => {
  const answer = await call(`/api/v1/admin${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  // A stream of events does not end, so its body is not read.
  const isStream = answer.headers.get('content-type') === 'text/event-stream'
  if (isStream) await answer.body?.cancel()
  const text = isStream ? '' : await answer.text()
  return { status: answer.status, body: text ? JSON.parse(text) : undefined, headers: answer.headers }
}

/** Returns the first admin client's token. Returns an empty text if the secret is refused. */
export const tokenOf = async (call: Call, client_secret: string): Promise<string> => {
  const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret }
  const answer = await call('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })
  return ((await answer.json()) as Json).access_token ?? ''
}

/** Returns a function that calls the admin API as the first admin client. */
export const adminOf = (call: Call, client_secret: string): TestApp['admin'] => {
  let token = ''
  return async (method, path, body) => {
    token ||= await tokenOf(call, client_secret)
    return adminCall(call, token, method, path, body)
  }
}

/** Like `adminOf`, for the running server at `url`. */
export const adminAt = (url: string, client_secret: string): TestApp['admin'] =>
  adminOf((path, init) => fetch(url + path, init), client_secret)
