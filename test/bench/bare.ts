import { Database } from 'bun:sqlite'
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '#src/storage/sqlite/migrate.ts'
import { paths } from './gatehouse.ts'
import { freePort, freshDirectory, start } from './server-process.ts'
import { type BenchClient, REDIRECT_URI, type Target } from './target.ts'

// The bare stack shows the least possible cost of the hot operations. It consists of Bun.serve, SQLite with
// Gatehouse's schema and durability, and Gatehouse's signatures. It writes the same rows as Gatehouse, and
// several requests share a commit. It verifies nothing and has no limits, no log, no metrics and no MACs of
// events.

/** Names of the operations that the bare stack serves (operations.ts). */
export const BARE_OPERATIONS = [
  'discovery',
  'key set',
  'client credentials',
  'refresh',
  'code flow, ES256',
  'code flow, RS256',
]

export const SECRET = 's'.repeat(43)
export const COOKIE = 'c'.repeat(43)

const clientOf = (client_id: string): BenchClient => ({ client_id, client_secret: SECRET })

const SCRIPTS = {
  bare: new URL(import.meta.url),
  required: new URL('./required.ts', import.meta.url),
}

/**
 * Starts the bare stack or, for `required`, the stack of required.ts. Each stack serves discovery, the key
 * set, client credentials, refreshes and the code flow.
 */
export const bareTarget = async (stack: 'bare' | 'required' = 'bare'): Promise<Target> => {
  const [directory, port] = [await freshDirectory(), await freePort()]
  const command = [process.execPath, fileURLToPath(SCRIPTS[stack]), String(port), directory]
  const server = await start({ command, env: {}, port, directory, probe: paths.discovery })
  const [es256, rs256, service] = ['es256', 'rs256', 'service'].map(clientOf) as [
    BenchClient,
    BenchClient,
    BenchClient,
  ]
  return {
    name: stack,
    process: server,
    paths,
    es256,
    rs256,
    service: { ...service, scope: 'read' },
    introspector: es256,
    cookie: `login=${COOKIE}`,
  }
}

export const ORGANIZATION = 'org_0199aaaa-0000-7000-8000-000000000000'
export const USER_ID = 'usr_0199aaaa-0000-7000-8000-000000000001'
export const LOGIN_ID = 'login_0199aaaa-0000-7000-8000-000000000002'
export const SCOPE = 'openid profile email'
const EVENT =
  'id, type, actor_id, actor_email, target_id, target_type, organization_id, ip_address, user_agent, timestamp, metadata, mac'
const SESSION =
  'id, user_id, client_id, organization_id, login_id, scope, ip_address, user_agent, location, started_at, last_active_at, expires_at, due_at, refresh_hash'
export const DAY = 86_400_000

export const openDatabase = (path: string): Database => {
  const db = new Database(path, { create: true })
  db.run('PRAGMA page_size = 2048')
  migrate(db)
  for (const setting of ['journal_mode = WAL', 'synchronous = FULL', 'cache_size = -16384'])
    db.run(`PRAGMA ${setting}`)
  return db
}

type Body = () => unknown

/** The parts of a write that required.ts adds. */
interface Added {
  /** Returns the MAC of an event. */
  mac(event: readonly unknown[]): string
  /** Runs the body of one write. */
  run(body: Body): unknown
  /** Runs before the commit. */
  end(): void
}

const NOTHING_ADDED: Added = { mac: () => 'm'.repeat(43), run: body => body(), end: () => {} }

/** Returns the functions that write. All requests of one turn of the event loop share a commit. */
export const openWrites = (db: Database, { mac, run, end } = NOTHING_ADDED) => {
  const insert = (table: string, columns: string) =>
    db.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.replace(/\w+/g, '?')})`)
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const [event, session] = [insert('events', EVENT), insert('sessions', SESSION)]
  const rotate = db.prepare(
    'UPDATE sessions SET last_active_at = ?, expires_at = ?, refresh_hash = ? WHERE id = ?',
  )
  let waiting: { body: Body; resolve(value: unknown): void }[] = []
  const drain = (): void => {
    const batch = waiting
    waiting = []
    begin.run()
    const values = batch.map(({ body }) => run(body))
    end()
    commit.run()
    batch.forEach(({ resolve }, i) => {
      resolve(values[i])
    })
  }
  return {
    write: <T>(body: () => T): Promise<T> =>
      new Promise(resolve => {
        const answer = resolve as (value: unknown) => void
        if (waiting.push({ body, resolve: answer }) === 1) setImmediate(() => setImmediate(drain))
      }),
    event(type: string, [actor, email]: [string, string | null], target: [string, string], metadata: object) {
      const now = Date.now()
      const id = `evt_${Bun.randomUUIDv7('hex', now)}`
      const text = JSON.stringify(metadata)
      const client = ['127.0.0.1', 'bench'] as const
      const row = [id, type, actor, email, ...target, ORGANIZATION, ...client, now, text] as const
      event.run(...row, mac(row))
    },
    session(id: string, hash: string) {
      const now = Date.now()
      const end = now + DAY
      const client = ['127.0.0.1', 'bench', ''] as const
      session.run(id, USER_ID, 'es256', ORGANIZATION, LOGIN_ID, SCOPE, ...client, now, now, end, end, hash)
    },
    rotate(id: string, hash: string) {
      const now = Date.now()
      rotate.run(now, now + DAY, hash, id)
    },
  }
}

/**
 * Makes an ES256 key and an RS256 key. Returns a function that signs a JWT with the key of the given
 * algorithm, by default ES256.
 */
export const openSigner = () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const header = encode({ alg: 'ES256', kid: randomUUID(), typ: 'at+jwt' })
  const token = (sub: string, more: object, key: KeyObject = ec): string => {
    const now = Math.floor(Date.now() / 1000)
    const issued = { iss: 'http://localhost', sub, aud: 'http://localhost', iat: now, exp: now + 900 }
    const input = `${header}.${encode({ ...issued, ...more, jti: randomUUID() })}`
    const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
  return { token, rsa }
}

export const DOCUMENT = JSON.stringify({ issuer: 'http://localhost', padding: 'x'.repeat(1_500) })
export const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

const serve = (port: number, directory: string): void => {
  const { write, event, session, rotate } = openWrites(openDatabase(join(directory, 'bare.db')))
  const { token, rsa } = openSigner()
  const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
  const newRefreshToken = (id: string) =>
    `${id}.${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
  const user: [string, string] = [USER_ID, 'bench@example.com']
  const profile = { given_name: 'Ben', family_name: 'Ch', email: user[1], email_verified: true, scope: SCOPE }

  const grants: Record<string, (form: URLSearchParams) => Promise<object>> = {
    async client_credentials(form) {
      const client_id = form.get('client_id') ?? ''
      const metadata = { client_id, grant_type: 'client_credentials', scope: 'read' }
      await write(() => event('token.issued', [client_id, null], [client_id, 'client'], metadata))
      return { access_token: token(client_id, { client_id, scope: 'read' }) }
    },
    async refresh_token(form) {
      const [id = ''] = (form.get('refresh_token') ?? '').split('.')
      const refresh_token = newRefreshToken(id)
      await write(() => {
        rotate(id, hashOf(refresh_token))
        event('token.refreshed', user, [id, 'session'], { client_id: form.get('client_id') })
      })
      return { access_token: token(USER_ID, profile), refresh_token }
    },
    async authorization_code(form) {
      const client_id = form.get('client_id')
      const id = `sess_${Bun.randomUUIDv7()}`
      const refresh_token = newRefreshToken(id)
      await write(() => {
        session(id, hashOf(refresh_token))
        const by = { client_id, grant_type: 'authorization_code' }
        event('user.login', user, [USER_ID, 'user'], { ...by, session_id: id, amr: ['pwd'] })
        event('session.created', user, [id, 'session'], { client_id, scope: SCOPE })
        event('token.issued', user, [id, 'session'], { ...by, scope: SCOPE })
      })
      const id_token = token(USER_ID, profile, client_id === 'rs256' ? rsa : undefined)
      return { access_token: token(USER_ID, profile), id_token, refresh_token }
    },
  }

  Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 255,
    async fetch(request) {
      const { url } = request
      if (request.method === 'POST') {
        const form = new URLSearchParams(await request.text())
        const answer = await grants[form.get('grant_type') ?? '']?.(form)
        const body = { ...answer, token_type: 'Bearer', expires_in: 900, scope: SCOPE }
        return new Response(JSON.stringify(body), { headers: { ...JSON_TYPE, 'cache-control': 'no-store' } })
      }
      if (!url.includes(paths.authorize)) return new Response(DOCUMENT, { headers: JSON_TYPE })
      const state = new URL(url).searchParams.get('state')
      const code = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
      const location = `${REDIRECT_URI}?code=${code}&state=${state}`
      return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } })
    },
  })
}

if (import.meta.main) serve(Number(process.argv[2]), process.argv[3] ?? '')
