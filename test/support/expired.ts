import { Database } from 'bun:sqlite'

const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?1)`

/**
 * Fills a database while its server runs. Adds `rows` expired codes, a tenth as many expired sessions, and a
 * tenth as many sessions of the organization `gone`.
 */
export const fillExpired = (path: string, rows: number, gone: string): void => {
  using db = new Database(path)
  db.run('PRAGMA busy_timeout = 5000')
  db.run('PRAGMA synchronous = OFF')
  db.prepare(
    `${numbers} INSERT INTO authorization_codes (code_hash, expires_at) SELECT hex(randomblob(22)), n FROM numbers`,
  ).run(rows)
  const sessions = db.prepare(
    `${numbers} INSERT INTO sessions (id, user_id, client_id, organization_id, login_id, scope, ip_address, user_agent,
      started_at, last_active_at, expires_at, due_at)
    SELECT printf('sess_%s_%012d', ?2, n), 'usr_' || (n % 1000), 'shop', ?2, 'login_' || n, 'openid', '192.0.2.1',
      'Mozilla/5.0', n, n, ?3, ?3 FROM numbers`,
  )
  sessions.run(rows / 10, 'org_default', rows)
  sessions.run(rows / 10, gone, 8e15)
}
