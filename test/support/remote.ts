import type { Context } from '#src/context.ts'
import { adminOf } from './admin-calls.ts'
import type { TestApp } from './app.ts'
import { type Running, SECRET } from './executable.ts'

/**
 * A running executable with the interface of `TestApp`. Requests go to its socket, not to its public address.
 */
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
  return { call, admin: adminOf(call, secret), context: { config: { url: server.url } } as Context }
}
