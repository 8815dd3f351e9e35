import { Database } from 'bun:sqlite'
import { eventTypes } from '#src/audit/types.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { searchText } from '#src/storage/search.ts'
import { random } from '#test/support/random.ts'

/**
 * Fills a migrated database with users and events while no server uses it:
 * `bun test/bench/fill.ts data/gatehouse.db 1000000 10000000`.
 * One tenant has about 80 % of the rows, the default organization 12 %, and another tenant 5 %. Many small
 * tenants share the other rows.
 * Each tenant has a client.
 * Indexes and triggers are dropped at the start and created again at the end.
 */
const first = [
  'zoe',
  'adam',
  'bella',
  'carl',
  'dina',
  'emil',
  'fay',
  'gus',
  'hana',
  'ivan',
  'jane',
  'kim',
  'liam',
  'mona',
]
const last = [
  'abbott',
  'brown',
  'chen',
  'diaz',
  'evans',
  'fischer',
  'garcia',
  'haas',
  'ito',
  'jones',
  'kowalski',
  'lopez',
]

const START = Date.UTC(2025, 0, 1)
const YEAR = 365 * 86_400_000

export const HUGE: OrganizationId = 'org_huge'
export const MIDDLE: OrganizationId = 'org_middle'
export const small = (i: number): OrganizationId => `org_small${i}`

/** Drops indexes and triggers, runs `body` in one transaction, and creates them again. */
const bare = (db: Database, body: () => void): void => {
  const made = db
    .query<{ type: string; name: string; sql: string }, []>(
      "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL",
    )
    .all()
  for (const { type, name } of made) db.run(`DROP ${type} "${name}"`)
  db.transaction(body)()
  for (const { sql } of made) db.run(sql)
}

const organizationOf = (i: number, users: number): OrganizationId => {
  if (i % 20 === 0) return MIDDLE
  if (i % 50 === 1) return small(i % 997)
  return i < users / 50 || i % 10 === 2 ? 'org_default' : HUGE
}

const names = (seed: number) => {
  const next = random(seed)
  const pick = (list: string[]) => list[Math.floor(next() * list.length)] ?? ''
  return { next, pick }
}

const addOrganizations = (db: Database): void => {
  const organization = db.prepare(
    `INSERT INTO organizations (id, name, slug, display_name, search_text, settings, created_at, updated_at)
    VALUES (?1, ?1, ?2, ?1, ?1, ?3, ?4, ?4) ON CONFLICT DO NOTHING`,
  )
  const role = db.prepare(
    `INSERT INTO roles (id, organization_id, name, permissions, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
    ON CONFLICT DO NOTHING`,
  )
  const client = db.prepare(
    `INSERT INTO clients (client_id, organization_id, name, type, redirect_uris, post_logout_redirect_uris, web_origins,
      grant_types, scopes, token_endpoint_auth_method, access_token_ttl, refresh_token_ttl, capabilities, consent_required,
      access_token_typ, refresh_token_reuse_window, created_at, updated_at)
    VALUES (?1, ?2, ?3, 'public', '["http://127.0.0.1/callback"]', '[]', '[]', '["authorization_code"]', '["openid"]',
      'none', 900, 2592000, '[]', 0, 'at+jwt', 0, ?4, ?4)`,
  )
  const ids = ['org_default', HUGE, MIDDLE, ...Array.from({ length: 997 }, (_, i) => small(i))]
  for (const id of ids) {
    organization.run(id, id.slice(4), '{}', START)
    client.run(`shop-${id.slice(4)}`, id, `Shop of ${id}`, START)
    for (const name of ['user', 'admin', ...(id === HUGE ? ['staff', 'auditor'] : [])])
      role.run(id === 'org_default' ? `role_${name}` : `role_${name}_${id}`, id, name, '[]', START)
  }
}

const addUsers = (db: Database, users: number): void => {
  const { next, pick } = names(1)
  const insert = db.prepare(
    `INSERT INTO users (id, organization_id, username, username_fold, email, email_fold, first_name, last_name, search_text, enabled,
      email_verified, attributes, password_changed_at, created_at, updated_at, last_login)
    VALUES (?1, ?2, ?3, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9, '{}', ?10, ?10, ?10, ?11)`,
  )
  const hold = db.prepare(
    `INSERT INTO user_roles (user_id, role_id, role_name, organization_id, seq, enabled, email_verified, username_fold, email_fold, last_login)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (let i = 0; i < users; i++) {
    const created = START + Math.floor((i / users) * YEAR)
    const id = `usr_${Bun.randomUUIDv7('hex', created)}`
    const organization_id = organizationOf(i, users)
    const [first_name, last_name] = [pick(first), pick(last)]
    const number = Math.floor(next() * 36 ** 5).toString(36)
    const username = `${first_name}.${last_name}.${number}${i.toString(36)}`
    const email = foldIdentifier(`${username}@${i < users / 2 ? 'acme' : 'globex'}.example.com`)
    const enabled = i % 5000 !== 7
    const verified = next() < 0.5
    const last_login = next() < 0.3 ? null : Math.floor(created + next() * (START + YEAR - created))
    const text = searchText({ organization_id, username, email, first_name, last_name })
    const { lastInsertRowid: seq } = insert.run(
      id,
      organization_id,
      username,
      email,
      first_name,
      last_name,
      text,
      enabled,
      verified,
      created,
      last_login,
    )
    const roles = [
      'user',
      ...(i % 40_000 === 13 ? ['admin'] : []),
      ...(organization_id !== HUGE ? [] : i % 200 === 3 ? ['staff'] : i % 200_000 === 5 ? ['auditor'] : []),
    ]
    for (const name of roles)
      hold.run(
        id,
        organization_id === 'org_default' ? `role_${name}` : `role_${name}_${organization_id}`,
        name,
        organization_id,
        Number(seq),
        enabled,
        verified,
        username,
        email,
        last_login,
      )
  }
}

const addEvents = (db: Database, events: number): void => {
  const { next } = names(2)
  const users = db
    .query<{ id: string; email: string; organization_id: string }, []>(
      'SELECT id, email, organization_id FROM users ORDER BY seq DESC LIMIT 100000',
    )
    .all()
  const insert = db.prepare(
    `INSERT INTO events (id, type, actor_id, actor_email, target_id, target_type, organization_id, ip_address, user_agent, timestamp, metadata, subject_id, mac)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')`,
  )
  const common = ['user.login', 'session.created', 'token.issued', 'token.refreshed', 'token.refreshed']
  for (let i = 0; i < events; i++) {
    const time = START + Math.floor((i / events) * YEAR)
    const user = users[Math.floor(next() ** 2 * users.length)]
    if (!user) return
    const type = next() < 0.01 ? eventTypes[Math.floor(next() * 20)] : common[i % common.length]
    const byClient = i % 4 === 0
    insert.run(
      `evt_${Bun.randomUUIDv7('hex', time)}`,
      type ?? '',
      byClient ? 'backend' : user.id,
      byClient ? null : user.email,
      type === 'user.login' ? user.id : `sess_${user.id.slice(4)}`,
      type === 'user.login' ? 'user' : 'session',
      user.organization_id,
      i % 3 === 0 ? '192.0.2.1' : `198.51.${Math.floor(next() * 256)}.${Math.floor(next() * 256)}`,
      'Mozilla/5.0',
      time,
      '{"client_id":"backend"}',
      user.id,
    )
  }
}

const countAll = (db: Database): void => {
  db.run("DELETE FROM counters WHERE organization_id <> ''")
  for (const kind of ['users', 'roles', 'groups', 'clients', 'events'])
    db.run(
      `INSERT INTO counters SELECT '${kind}', o.id, coalesce(n, 0) FROM organizations o
      LEFT JOIN (SELECT organization_id, count(*) n FROM ${kind} GROUP BY 1) c ON c.organization_id = o.id`,
    )
  db.run(
    `INSERT INTO counters SELECT 'sessions', o.id, coalesce(n, 0) FROM organizations o LEFT JOIN
    (SELECT organization_id, count(*) n FROM sessions WHERE ended_at IS NULL GROUP BY 1) c ON c.organization_id = o.id`,
  )
  db.run(
    "INSERT INTO counters SELECT 'organizations', '', count(*) FROM organizations WHERE true ON CONFLICT DO UPDATE SET total = excluded.total",
  )
  db.run(
    "UPDATE organizations SET user_count = coalesce((SELECT total FROM counters WHERE kind = 'users' AND organization_id = id), 0)",
  )
  db.run(
    'UPDATE roles SET user_count = coalesce((SELECT n FROM (SELECT role_id, count(*) n FROM user_roles GROUP BY 1) WHERE role_id = id), 0)',
  )
}

export const fill = (path: string, users: number, events: number): void => {
  const db = new Database(path)
  // The write-ahead log is turned off in two steps. The first step copies the log into the database.
  db.run('PRAGMA journal_mode = DELETE')
  db.run('PRAGMA journal_mode = OFF')
  db.run('PRAGMA synchronous = OFF')
  db.run('PRAGMA cache_size = -1000000')
  bare(db, () => {
    addOrganizations(db)
    addUsers(db, users)
    addEvents(db, events)
  })
  countAll(db)
  db.run("INSERT INTO users_search (users_search) VALUES ('rebuild')")
  db.run("INSERT INTO users_search (users_search) VALUES ('optimize')")
  db.run('PRAGMA journal_mode = WAL')
  db.close()
}

if (import.meta.main) {
  const [path = '', users = '1000000', events = '10000000'] = Bun.argv.slice(2)
  fill(path, Number(users), Number(events))
}
