import { fetchDirectly } from './fetch-directly.ts'
import type { AuditEvent, Controls, KeyState } from './types.ts'

// This file is published and runs in Node, Deno and Bun, so it imports nothing from the server.

/** Address of a development server, its control token and, with `tls`, the file of its certificate. */
interface Server {
  url: string
  control_token: string
  ca_file?: string | null
}

/** Returns a function that calls a control. If the call is refused or fails, the function throws an Error. */
const sender = ({ url, control_token, ca_file }: Server) => {
  const call = fetchDirectly(ca_file)
  return async (
    method: string,
    path: string,
    body?: unknown,
    { accept, signal }: { accept?: string; signal?: AbortSignal } = {},
  ): Promise<Response> => {
    const answer = await call(`${url}/dev/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${control_token}`,
        'content-type': 'application/json',
        ...(accept !== undefined && { accept }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    }).catch(({ message, code }) => {
      throw new Error(`${method} ${url}/dev/${path}: ${message || code}`)
    })
    if (answer.ok) return answer
    throw new Error(`${method} /dev/${path}: ${answer.status} ${describe(await answer.text())}`)
  }
}

/**
 * Returns the controls of a development server that runs already. Several test processes can thus share a
 * server.
 *
 * @param server default: the server of `gatehouse exec`, which SERVICE_URL and SERVICE_DEV_TOKEN name
 * @throws Error when no `server` is given and one of these variables is not set
 *
 * @example
 * const gatehouse = connectGatehouse() // in a test that `gatehouse exec -- npm test` runs
 * const { token } = await gatehouse.mint({ user: 'alice' })
 */
export const connectGatehouse = (server: Server = serverOfExec()): Controls => {
  const send = sender(server)
  const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    (await (await send(method, path, body)).json()) as T
  const run = async (method: string, path: string, body?: unknown): Promise<void> => {
    // An unread body would keep its connection open.
    await (await send(method, path, body)).text()
  }
  const query = (filter: object = {}): string => {
    const given = Object.entries(filter).filter(([, value]) => value !== undefined)
    return given.length > 0
      ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
      : ''
  }
  const list = async <T>(path: string): Promise<T[]> => (await ask<{ data: T[] }>('GET', path)).data
  const setClock = (change: object): Promise<void> => run('POST', 'clock', change)
  const setKeys = async (change: object): Promise<KeyState[]> =>
    (await ask<{ keys: KeyState[] }>('POST', 'keys', change)).keys

  return {
    mint: options => ask('POST', 'mint', options ?? {}),
    users: {
      list: options => list(`users${query(options)}`),
      put: (...users) => run('POST', 'users', users),
      remove: (user, options) => run('DELETE', `users${query({ user, ...options })}`),
    },
    mfa: {
      enrol: async (user, options) =>
        (await ask<{ secret: string }>('POST', 'mfa', { user, ...options })).secret,
      code: async (user, options) => {
        const [code] = (await ask<{ codes: string[] }>('GET', `mfa${query({ user, ...options })}`)).codes
        if (code === undefined) throw new Error(`${user} has no authenticator app; enrol one with mfa.enrol`)
        return code
      },
    },
    seed: seed => run('POST', 'seed', seed),
    reset: options => run('POST', 'reset', options ?? {}),
    clock: {
      now: async () => new Date((await ask<{ now: string }>('GET', 'clock')).now),
      freeze: () => setClock({ freeze: true }),
      set: time => setClock({ set: new Date(time).getTime() }),
      advance: ms => setClock({ advance: ms }),
      reset: () => setClock({ reset: true }),
    },
    keys: {
      list: async () => (await ask<{ keys: KeyState[] }>('GET', 'keys')).keys,
      publish: alg => setKeys({ action: 'publish', alg }),
      activate: kid => setKeys({ action: 'activate', kid }),
      retire: kid => setKeys({ action: 'retire', kid }),
      revoke: kid => setKeys({ action: 'revoke', kid }),
      pin: jwk => setKeys({ action: 'pin', jwk: { ...jwk } }),
    },
    faults: {
      add: fault => run('POST', 'faults', fault),
      clear: () => run('DELETE', 'faults'),
    },
    requests: filter => list(`requests${query(filter)}`),
    tokens: filter => list(`tokens${query(filter)}`),
    events: {
      list: filter => list(`events${query(filter)}`),
      stream: filter =>
        readEvents(signal =>
          send('GET', `events${query(filter)}`, undefined, { accept: 'text/event-stream', signal }),
        ),
    },
  }
}

const serverOfExec = (): Server => {
  const { SERVICE_URL: url, SERVICE_DEV_TOKEN: control_token } = process.env
  if (url && control_token) return { url, control_token }
  throw new Error(
    'SERVICE_URL or SERVICE_DEV_TOKEN is not set: run the tests with gatehouse exec, or pass a server',
  )
}

/** Returns the text of a refusal in one line, with each refused field. */
const describe = (text: string): string => {
  try {
    const { error_description, details = [] } = JSON.parse(text)
    return [
      error_description,
      ...details.map(({ field, message }: Record<string, string>) => `${field}: ${message}`),
    ].join(' ')
  } catch {
    return text
  }
}

async function* readEvents(open: (signal: AbortSignal) => Promise<Response>): AsyncGenerator<AuditEvent> {
  const stop = new AbortController()
  try {
    const { body } = await open(stop.signal)
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of body ?? []) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data) yield JSON.parse(data)
      }
    }
  } finally {
    stop.abort()
  }
}
