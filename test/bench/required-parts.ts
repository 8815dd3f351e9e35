import type { Database } from 'bun:sqlite'
import { createCipheriv, createDecipheriv, hash, timingSafeEqual } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { ORGANIZATION, SCOPE, SECRET } from './bare.ts'

// The parts that required.ts adds to the bare stack.

export type Row = Record<string, string | number | null>
export type Form = ReadonlyMap<string, string>

const KEY = crypto.getRandomValues(Buffer.alloc(32))
const KEYED = new Bun.CryptoHasher('sha256', KEY)
const TAG = 16
const HOUR = 3_600_000
export const CODE_LIFETIME = 60_000
const MAX_BODY = 64 * 1024
const MAX_PARAMETERS = 100
const BODY_TIMEOUT = 10_000
const LOG_BUFFER = 32 * 1024
const LOG_INTERVAL = 100
/** Upper bounds of the buckets of the metrics, in ms. */
const BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000]

export const check = (condition: unknown): void => {
  if (!condition) throw new Error('The request of the benchmark is not valid.')
}

export const sha256 = (text: string): string => hash('sha256', text, 'base64url')

export const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))

interface Received {
  request: Request
  id: string
  path: string
  /** Result of `performance.now`. */
  started: number
}

/**
 * Returns the functions that receive a request and finish its answer. They add request id, metrics, headers
 * and log line.
 */
export const openEdge = (directory: string) => {
  const log = createWriteStream(join(directory, 'requests.jsonl'))
  let lines = ''
  const flush = (): void => {
    log.write(lines)
    lines = ''
  }
  setInterval(flush, LOG_INTERVAL)
  const durations = new Map<string, { buckets: number[]; sum: number }>()
  const statuses = new Map<number, number>()
  return {
    receive: (request: Request): Received => {
      const { url } = request
      const start = url.indexOf('/', url.indexOf('//') + 2)
      const query = url.indexOf('?', start)
      return {
        request,
        id: Bun.randomUUIDv7(),
        started: performance.now(),
        path: query < 0 ? url.slice(start) : url.slice(start, query),
      }
    },
    finish: ({ id, path, started, request }: Received, response: Response): Response => {
      response.headers.set('x-request-id', id)
      response.headers.set('x-content-type-options', 'nosniff')
      const ms = Math.round((performance.now() - started) * 1000) / 1000
      const series = durations.get(path) ?? { buckets: new Array(BOUNDS.length + 1).fill(0), sum: 0 }
      durations.set(path, series)
      const bucket = BOUNDS.findIndex(bound => ms <= bound)
      const at = bucket < 0 ? BOUNDS.length : bucket
      series.buckets[at] = (series.buckets[at] ?? 0) + 1
      series.sum += ms
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      lines +=
        `{"level":30,"time":"${new Date().toISOString()}","event":"request","request_id":"${id}",` +
        `"method":"${request.method}","path":${JSON.stringify(path)},"status":${response.status},"ms":${ms}}\n`
      if (lines.length > LOG_BUFFER) flush()
      return response
    },
  }
}

/** Decodes a query or a form in which each parameter occurs once. */
export const parse = (text: string): Form => {
  check(text.isWellFormed())
  const values = new Map<string, string>()
  const pieces = text.split('&', MAX_PARAMETERS + 1)
  check(pieces.length <= MAX_PARAMETERS)
  for (const piece of pieces) {
    const equals = piece.indexOf('=')
    const name = decodeURIComponent(piece.slice(0, equals))
    const value = piece.slice(equals + 1).replaceAll('+', ' ')
    check(!values.has(name))
    values.set(name, value.includes('%') ? decodeURIComponent(value) : value)
  }
  return values
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads a form of limited size in limited time. */
export const readForm = async (request: Request): Promise<Form> => {
  check(Number(request.headers.get('content-length') ?? Number.NaN) <= MAX_BODY)
  check(request.headers.get('content-type') === 'application/x-www-form-urlencoded')
  const timer = setTimeout(() => check(false), BODY_TIMEOUT)
  const bytes = await request.arrayBuffer()
  clearTimeout(timer)
  return parse(utf8.decode(bytes))
}

const secret_hash = sha256(SECRET)
const scopes = [...SCOPE.split(' '), 'read']
export const clients = new Map(
  ['es256', 'rs256', 'service'].map(id => [id, { client_id: id, secret_hash, scopes }]),
)

/** Authenticates the client of a form, and checks that the client has all scopes of `scope`. */
export const authenticate = (form: Form, scope: string): string => {
  const client = clients.get(form.get('client_id') ?? '')
  check(client && isSame(sha256(form.get('client_secret') ?? ''), client.secret_hash))
  check(scope.split(' ').every(each => client?.scopes.includes(each)))
  return client?.client_id ?? ''
}

/** Encrypts the content of a code for a client. */
export const seal = (content: object, client_id: string): string => {
  const nonce = crypto.getRandomValues(Buffer.alloc(12))
  const cipher = createCipheriv('aes-256-gcm', KEY, nonce).setAAD(Buffer.from(client_id))
  const sealed = cipher.update(JSON.stringify(content))
  return Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

export const open = (sealed: string, client_id: string): Record<string, string> => {
  const bytes = Buffer.from(sealed, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', KEY, bytes.subarray(0, 12), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(client_id)).setAuthTag(bytes.subarray(-TAG))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(12, -TAG)), decipher.final()]).toString())
}

const tagOf = (named: Uint8Array): Buffer => KEYED.copy().update(named).digest().subarray(0, TAG)

/** Returns a refresh token that names its session and has a MAC. */
export const refreshToken = (session_id: string): string => {
  const named = Buffer.concat([Buffer.from(session_id), crypto.getRandomValues(Buffer.alloc(32))])
  return Buffer.concat([named, tagOf(named)]).toString('base64url')
}

export const sessionOf = (token: string): string => {
  const bytes = Buffer.from(token, 'base64url')
  const named = bytes.subarray(0, -TAG)
  check(timingSafeEqual(bytes.subarray(-TAG), tagOf(named)))
  return named.toString('utf8', 0, named.length - 32)
}

const USER =
  'users.id, users.organization_id, users.username, users.email, users.email_verified, users.first_name, ' +
  'users.last_name, users.enabled, users.active_at, organizations.settings'

export const openReads = (db: Database) => {
  const login = db.prepare(
    `SELECT logins.id AS login_id, logins.auth_time, logins.acr, logins.amr, logins.codes_revoked, ${USER},
       consents.scopes, factors.type
     FROM logins
     JOIN users ON users.id = logins.user_id
     JOIN organizations ON organizations.id = logins.organization_id
     LEFT JOIN consents ON consents.user_id = logins.user_id AND consents.client_id = +?
     LEFT JOIN factors ON factors.user_id = logins.user_id
     WHERE logins.browser_hash = +? AND logins.expires_at > +?`,
  )
  const subject = db.prepare(
    `SELECT ${USER}, logins.codes_revoked, logins.ip_address, logins.user_agent,
       authorization_codes.expires_at AS burnt_at
     FROM logins
     JOIN users ON users.id = logins.user_id
     JOIN organizations ON organizations.id = logins.organization_id
     LEFT JOIN authorization_codes ON authorization_codes.code_hash = +?
     WHERE logins.id = +?`,
  )
  const roles = db.prepare(
    `SELECT roles.id, name, permissions FROM user_roles JOIN roles ON roles.id = role_id WHERE user_id = +?
     UNION SELECT roles.id, name, permissions FROM group_members
       JOIN group_roles ON group_roles.group_id = group_members.group_id JOIN roles ON roles.id = role_id
       WHERE user_id = +? ORDER BY name`,
  )
  const session = db.prepare(
    `SELECT sessions.client_id, sessions.expires_at, sessions.ended_at, sessions.refresh_hash, ${USER}
     FROM sessions
     JOIN users ON users.id = sessions.user_id
     JOIN organizations ON organizations.id = users.organization_id
     WHERE sessions.id = +?`,
  )
  return {
    login: (cookie: string, client_id: string) => login.get(client_id, sha256(cookie), Date.now()) as Row,
    subject: (code: string, login_id: string) => subject.get(sha256(code), login_id) as Row,
    roles: (user: Row) => roles.all(user.id as string, user.id as string) as Row[],
    session: (id: string) => session.get(id) as Row,
  }
}

/** Returns the parts of a write: its savepoint, the MACs of its events, and the statistics of the hour. */
export const openAdded = (db: Database) => {
  const [savepoint, release] = [db.prepare('SAVEPOINT body'), db.prepare('RELEASE body')]
  const add = db.prepare(
    `INSERT INTO statistics SELECT organization_id, +?, 0, +?, 0, 0, 0, 0, +?
     FROM (SELECT '' AS organization_id UNION ALL SELECT +?) WHERE true
     ON CONFLICT DO UPDATE SET logins = logins + excluded.logins, tokens = tokens + excluded.tokens`,
  )
  const counted = { logins: 0, tokens: 0 }
  return {
    counted,
    mac: (event: readonly unknown[]) => KEYED.copy().update(JSON.stringify(event)).digest('base64url'),
    run: (body: () => unknown): unknown => {
      savepoint.run()
      const value = body()
      release.run()
      return value
    },
    end: () => {
      const now = Date.now()
      add.run(now - (now % HOUR), counted.logins, counted.tokens, ORGANIZATION)
      counted.logins = 0
      counted.tokens = 0
    },
  }
}
