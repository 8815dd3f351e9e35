import type { Core } from '#src/context.ts'
import { iso } from '#src/lib/text.ts'

/** A recorded request. */
export interface ReceivedRequest {
  at: string
  method: string
  path: string
  client_id: string | null
  /** Parameters of the query and the form. */
  parameters: Record<string, string>
  status: number
}

/** A token that the server issued. */
export interface IssuedRecord {
  at: string
  client_id: string | null
  /** The `grant_type`, or `mint` for a minted token. */
  grant_type: string
  kind: 'access_token' | 'id_token' | 'refresh_token'
  token: string
  /** Claims of a JWT. */
  claims?: Record<string, unknown>
}

/**
 * Maximum number of requests, and of tokens, in memory. Older records are dropped, because a test reads the
 * records right after its calls.
 */
const MAX_RECORDS = 1_000

const decode = (token: string): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  } catch {
    return undefined
  }
}

/** Records requests and issued tokens in memory. */
export const openRecorder = ({ clock }: Core) => {
  let requests: ReceivedRequest[] = []
  let tokens: IssuedRecord[] = []
  const now = () => iso(clock.now())
  const issued = (token: Omit<IssuedRecord, 'at' | 'claims'>): void => {
    const claims = decode(token.token)
    tokens = [...tokens, { at: now(), ...token, ...(claims && { claims }) }].slice(-MAX_RECORDS)
  }
  return {
    requests: (filter: { client_id?: string | undefined; path?: string | undefined }) =>
      requests.filter(
        ({ client_id, path }) =>
          (filter.client_id === undefined || client_id === filter.client_id) &&
          (filter.path === undefined || path === filter.path),
      ),
    tokens: (filter: { client_id?: string | undefined }) =>
      tokens.filter(({ client_id }) => filter.client_id === undefined || client_id === filter.client_id),
    received: (request: Omit<ReceivedRequest, 'at'>): void => {
      requests = [...requests, { at: now(), ...request }].slice(-MAX_RECORDS)
    },
    issued,
    /** Records the tokens of a token response. */
    answered: (client_id: string | null, grant_type: string, body: Record<string, unknown>): void => {
      for (const kind of ['access_token', 'id_token', 'refresh_token'] as const) {
        const token = body[kind]
        if (typeof token === 'string') issued({ client_id, grant_type, kind, token })
      }
    },
    clear: (): void => {
      requests = []
      tokens = []
    },
  }
}

export type Recorder = ReturnType<typeof openRecorder>
