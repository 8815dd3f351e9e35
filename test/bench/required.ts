import type { Database } from 'bun:sqlite'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import {
  COOKIE,
  DAY,
  DOCUMENT,
  JSON_TYPE,
  LOGIN_ID,
  ORGANIZATION,
  openDatabase,
  openSigner,
  openWrites,
  SCOPE,
  USER_ID,
} from './bare.ts'
import { paths } from './gatehouse.ts'
import {
  authenticate,
  CODE_LIFETIME,
  check,
  clients,
  type Form,
  isSame,
  open,
  openAdded,
  openEdge,
  openReads,
  parse,
  type Row,
  readForm,
  refreshToken,
  seal,
  sessionOf,
  sha256,
} from './required-parts.ts'
import { REDIRECT_URI } from './target.ts'

// The bare stack (bare.ts) and the parts that a secure and complete answer requires: strict reading of
// requests with limits, client secrets, PKCE, sealed codes, the states of user, login and session, roles,
// MACs of events, statistics, request ids, metrics and log lines. Each part supports only the user, the
// clients and the requests of the benchmark, in the fastest known way. The stack has no settings,
// organizations, APIs, rate limits or error answers, and no other engine.

/** Writes the user of the benchmark, with organization, login and consent. */
const insertUser = (db: Database): void => {
  const now = Date.now()
  const insert = (table: string, row: Record<string, string | number>) =>
    db
      .prepare(`INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.keys(row).map(() => '?')})`)
      .run(...Object.values(row))
  const at = { created_at: now, updated_at: now }
  const [name, email] = ['bench', 'bench@example.com']
  const text = { name, slug: name, display_name: name, search_text: name, settings: '{}' }
  insert('organizations', { id: ORGANIZATION, ...text, ...at })
  insert('users', {
    id: USER_ID,
    organization_id: ORGANIZATION,
    username: name,
    username_fold: name,
    email,
    email_fold: email,
    first_name: 'Ben',
    last_name: 'Ch',
    search_text: name,
    attributes: '{}',
    password_changed_at: now,
    ...at,
  })
  insert('logins', {
    id: LOGIN_ID,
    browser_hash: sha256(COOKIE),
    user_id: USER_ID,
    organization_id: ORGANIZATION,
    auth_time: now,
    signed_in_at: now,
    acr: 'pwd',
    amr: '["pwd"]',
    ip_address: '127.0.0.1',
    user_agent: name,
    created_at: now,
    expires_at: now + DAY,
  })
  const consent = {
    user_id: USER_ID,
    client_id: 'es256',
    organization_id: ORGANIZATION,
    scopes: '["openid"]',
  }
  insert('consents', { ...consent, ...at })
}

const profileOf = (user: Row, roles: Row[]) => ({
  given_name: user.first_name,
  family_name: user.last_name,
  email: user.email,
  email_verified: user.email_verified === 1,
  scope: SCOPE,
  roles: roles.map(({ name }) => name),
})

const serve = (port: number, directory: string): void => {
  const db = openDatabase(join(directory, 'bare.db'))
  insertUser(db)
  const { receive, finish } = openEdge(directory)
  const reads = openReads(db)
  const added = openAdded(db)
  const { counted } = added
  const { write, event, session, rotate } = openWrites(db, added)
  const { token, rsa } = openSigner()

  const grants: Record<string, (form: Form) => Promise<object>> = {
    async client_credentials(form) {
      const client_id = authenticate(form, 'read')
      const metadata = { client_id, grant_type: 'client_credentials', scope: 'read' }
      await write(() => {
        event('token.issued', [client_id, null], [client_id, 'client'], metadata)
        counted.tokens += 1
      })
      return { access_token: token(client_id, { client_id, scope: 'read' }) }
    },
    async refresh_token(form) {
      const client_id = authenticate(form, SCOPE)
      const old = form.get('refresh_token') ?? ''
      const id = sessionOf(old)
      const { profile, refresh_token } = await write(() => {
        const user = reads.session(id)
        check(user.client_id === client_id && user.ended_at === null && Number(user.expires_at) > Date.now())
        check(user.enabled === 1 && isSame(String(user.refresh_hash), sha256(old)))
        const profile = profileOf(user, reads.roles(user))
        const refresh_token = refreshToken(id)
        rotate(id, sha256(refresh_token))
        event('token.refreshed', [String(user.id), String(user.email)], [id, 'session'], { client_id })
        counted.tokens += 1
        return { profile, refresh_token }
      })
      return { access_token: token(USER_ID, profile), refresh_token }
    },
    async authorization_code(form) {
      const client_id = authenticate(form, SCOPE)
      const code = form.get('code') ?? ''
      const { session_id: id = '', login_id = '', nonce, ...opened } = open(code, client_id)
      const { profile, refresh_token } = await write(() => {
        check(Number(opened.issued_at) + CODE_LIFETIME > Date.now())
        check(opened.redirect_uri === form.get('redirect_uri'))
        check(opened.code_challenge === sha256(form.get('code_verifier') ?? ''))
        const user = reads.subject(code, login_id)
        check(user.enabled === 1 && user.burnt_at === null && user.codes_revoked === null)
        const profile = profileOf(user, reads.roles(user))
        const refresh_token = refreshToken(id)
        session(id, sha256(refresh_token))
        const by = { client_id, grant_type: 'authorization_code' }
        const actor: [string, string] = [String(user.id), String(user.email)]
        event('user.login', actor, [USER_ID, 'user'], { ...by, session_id: id, amr: ['pwd'] })
        event('session.created', actor, [id, 'session'], { client_id, scope: SCOPE })
        event('token.issued', actor, [id, 'session'], { ...by, scope: SCOPE })
        counted.logins += 1
        counted.tokens += 1
        return { profile, refresh_token }
      })
      const access_token = token(USER_ID, profile)
      const at_hash = hash('sha256', access_token, 'buffer').toString('base64url', 0, 16)
      const claims = { ...profile, nonce, at_hash, sid: id }
      const id_token = token(USER_ID, claims, client_id === 'rs256' ? rsa : undefined)
      return { access_token, id_token, refresh_token }
    },
  }

  const document = new Headers({ ...JSON_TYPE, 'cache-control': 'public, max-age=300', etag: '"bench"' })
  const oauth = new Headers({ ...JSON_TYPE, 'cache-control': 'no-store', pragma: 'no-cache', vary: 'Origin' })
  const redirect = new Headers({ 'cache-control': 'no-store', pragma: 'no-cache' })

  const authorize = ({ url, headers }: Request): Response => {
    const asked = parse(url.slice(url.indexOf('?') + 1))
    const client_id = asked.get('client_id') ?? ''
    check(clients.has(client_id) && asked.get('redirect_uri') === REDIRECT_URI)
    check(asked.get('code_challenge_method') === 'S256' && asked.get('response_type') === 'code')
    const cookie = /(?:^|; )login=([^;]*)/.exec(headers.get('cookie') ?? '')?.[1] ?? ''
    const { login_id, auth_time, acr, amr, enabled } = reads.login(cookie, client_id)
    check(enabled === 1)
    const content = {
      session_id: `sess_${Bun.randomUUIDv7()}`,
      login_id,
      redirect_uri: REDIRECT_URI,
      scope: asked.get('scope'),
      nonce: asked.get('nonce'),
      code_challenge: asked.get('code_challenge'),
      auth_time,
      acr,
      amr,
      issued_at: Date.now(),
    }
    const query = { code: seal(content, client_id), state: asked.get('state') ?? '', iss: 'http://localhost' }
    const response = new Response(null, { status: 302, headers: redirect })
    response.headers.set('location', `${REDIRECT_URI}?${new URLSearchParams(query)}`)
    return response
  }

  Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 255,
    fetch(request) {
      const received = receive(request)
      if (request.method !== 'POST') {
        const isAuthorize = received.path === paths.authorize
        return finish(
          received,
          isAuthorize ? authorize(request) : new Response(DOCUMENT, { headers: document }),
        )
      }
      const answer = async (): Promise<Response> => {
        const form = await readForm(request)
        const granted = await grants[form.get('grant_type') ?? '']?.(form)
        const body = JSON.stringify({ ...granted, token_type: 'Bearer', expires_in: 900, scope: SCOPE })
        return finish(received, new Response(body, { headers: oauth }))
      }
      return answer()
    },
  })
}

if (import.meta.main) serve(Number(process.argv[2]), process.argv[3] ?? '')
