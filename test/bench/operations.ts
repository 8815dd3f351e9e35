import { type Answer, type Connection, connect, fromNewNetwork, get, header, post } from './connection.ts'
import { type Duration, type Measured, measure } from './load.ts'
import { samlLogin } from './saml.ts'
import {
  authorizePath,
  type BenchClient,
  fillForm,
  processesOf,
  REDIRECT_URI,
  type Target,
  VERIFIER,
} from './target.ts'

/** Runs the operation once over the connection for which it was prepared. */
export type Step = () => Promise<void>

export interface Operation {
  name: string
  /** Limit of the CPU time per operation in µs, at 8 connections. */
  limit?: number
  /**
   * Numbers of connections in place of the default. Logins have fewer connections, because they wait for
   * password hashes or XML documents in bounded queues.
   */
  connections?: number[]
  /** True if the operation is also measured on two copies. */
  on_copies?: boolean
  /** Prepares the operation on a connection. Returns undefined if the server lacks the operation. */
  prepare(target: Target, connection: Connection): Promise<Step | undefined>
}

const expect = (answer: Answer, status: number): Answer => {
  if (answer.status === status) return answer
  throw new Error(`Expected ${status}:\n${answer.head}\n\n${answer.body.slice(0, 1000)}`)
}

/** Repeats the same request. */
const repeat =
  (request: (target: Target, connection: Connection) => Promise<string | undefined>): Operation['prepare'] =>
  async (target, connection) => {
    const bytes = await request(target, connection)
    return bytes === undefined
      ? undefined
      : async () => {
          expect(await connection.send(bytes), 200)
        }
  }

const adminPage = (name: string, path: string): Operation => ({
  name,
  prepare: repeat(async ({ admin_token }) =>
    admin_token === undefined
      ? undefined
      : get(`/api/v1/admin${path}`, { authorization: `Bearer ${admin_token}` }),
  ),
})

interface Tokens {
  access_token: string
  refresh_token: string
}

const token = async (
  target: Target,
  connection: Connection,
  client: BenchClient,
  form: Record<string, string>,
): Promise<Tokens> => {
  const { client_id, client_secret } = client
  const request = post(target.paths.token, { ...form, client_id, client_secret })
  return JSON.parse(expect(await connection.send(request), 200).body)
}

/** Returns a function that gets a code with the cookie of a login and exchanges the code. */
const codeFlow = (target: Target, connection: Connection, client: BenchClient): (() => Promise<Tokens>) => {
  const authorize = get(authorizePath(target, client.client_id), { cookie: target.cookie })
  return async () => {
    const { head, status, body } = await connection.send(authorize)
    const code = /[?&]code=([^&]+)/.exec(header(head, 'location') ?? '')?.[1]
    if (!code) throw new Error(`Expected a code, got ${status}:\n${head}\n\n${body.slice(0, 1000)}`)
    return token(target, connection, client, {
      grant_type: 'authorization_code',
      code: decodeURIComponent(code),
      redirect_uri: REDIRECT_URI,
      code_verifier: VERIFIER,
    })
  }
}

const runCodeFlow =
  (client: 'es256' | 'rs256'): Operation['prepare'] =>
  async (target, connection) => {
    const run = codeFlow(target, connection, target[client])
    return async () => {
      await run()
    }
  }

const accessToken = async (target: Target, connection: Connection): Promise<string> =>
  (await codeFlow(target, connection, target.es256)()).access_token

/** Returns a function that runs a login without earlier cookies: the login page, the password, the code. */
export const passwordLogin = (target: Target, connection: Connection): (() => Promise<Answer>) => {
  const authorize = authorizePath(target, target.es256.client_id)
  return async () => {
    const network = fromNewNetwork()
    const page = expect(await connection.send(get(authorize, network)), 200)
    const cookie = header(page.head, 'set-cookie')?.split(';', 1)[0] ?? ''
    const { action, fields } = fillForm(page.body)
    return connection.send(post(new URL(action, 'http://localhost').pathname, fields, { cookie, ...network }))
  }
}

export const operations: Operation[] = [
  { name: 'discovery', limit: 10, prepare: repeat(async target => get(target.paths.discovery)) },
  { name: 'key set', limit: 10, prepare: repeat(async target => get(target.paths.jwks)) },
  {
    name: 'client credentials',
    limit: 80,
    on_copies: true,
    prepare: repeat(async ({ paths, service }) =>
      post(paths.token, { grant_type: 'client_credentials', ...service }),
    ),
  },
  {
    name: 'refresh',
    limit: 130,
    on_copies: true,
    prepare: async (target, connection) => {
      let { refresh_token } = await codeFlow(target, connection, target.es256)()
      return async () => {
        const form = { grant_type: 'refresh_token', refresh_token }
        refresh_token = (await token(target, connection, target.es256, form)).refresh_token
      }
    },
  },
  { name: 'code flow, ES256', limit: 240, on_copies: true, prepare: runCodeFlow('es256') },
  { name: 'code flow, RS256', prepare: runCodeFlow('rs256') },
  {
    name: 'introspection',
    limit: 90,
    prepare: repeat(async (target, connection) =>
      post(target.paths.introspect, {
        token: await accessToken(target, connection),
        ...target.introspector,
      }),
    ),
  },
  {
    name: 'userinfo',
    limit: 90,
    prepare: repeat(async (target, connection) =>
      get(target.paths.userinfo, { authorization: `Bearer ${await accessToken(target, connection)}` }),
    ),
  },
  adminPage('admin: page of users', '/users?limit=20'),
  adminPage('console: page of events', '/events?limit=50'),
  adminPage('console: statistics', '/statistics'),
  {
    name: 'login with a password',
    connections: [1, 8],
    prepare: async (target, connection) => {
      if (!target.proves_passwords) return undefined
      const logIn = passwordLogin(target, connection)
      return async () => {
        const { status, head, body } = await logIn()
        if (status !== 302 && status !== 303)
          throw new Error(`Expected a login, got ${head}\n\n${body.slice(0, 1000)}`)
      }
    },
  },
  {
    name: 'SAML login',
    connections: [1, 8],
    prepare: async (target, connection) => target.saml && samlLogin(target, target.saml, connection),
  },
]

/** Measures one operation over new connections. Returns undefined if the server lacks the operation. */
export const measureOperation = async (
  target: Target,
  operation: Operation,
  connections: number,
  duration: Duration,
): Promise<Measured | undefined> => {
  const opened = await Promise.all(Array.from({ length: connections }, () => connect(target.process.port)))
  try {
    const steps = await Promise.all(opened.map(connection => operation.prepare(target, connection)))
    const ready = steps.filter(step => step !== undefined)
    if (ready.length === 0) return undefined
    const before = await target.commits?.()
    const measured = await measure(processesOf(target), ready, duration)
    const after = await target.commits?.()
    const retried = before && after && (after.retried - before.retried) / (after.done - before.done)
    return { ...measured, ...(retried !== undefined && { retried }) }
  } finally {
    for (const connection of opened) connection.close()
  }
}
