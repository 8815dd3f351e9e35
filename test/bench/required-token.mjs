// Does only the necessary work of `gatehouse token` when no server runs, for one user and one client. The
// script opens the master key, the instance key and the signing key, reads the data for the claims, writes
// the session and two events durably, signs, and copies SQLite's log into the database. Its argument is the
// data directory. commands.ts measures the script.
import { Database } from 'bun:sqlite'
import { createDecipheriv, createPrivateKey, hkdfSync, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'

const directory = process.argv[2]
const open = (master, sealed, label) => {
  const key = Buffer.from(hkdfSync('sha256', master, '', 'gatehouse/seal', 32))
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(label)).setAuthTag(sealed.subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
}
const db = new Database(`${directory}/gatehouse.db`)
db.run('PRAGMA journal_mode = WAL')
db.run('PRAGMA synchronous = FULL')
const row = (sql, ...values) => db.query(sql).get(...values)

const master = Buffer.from(readFileSync(`${directory}/master.key`, 'utf8'), 'base64')
const { value } = row("SELECT value FROM settings WHERE name = 'instance_key'")
const instance = open(master, Buffer.from(JSON.parse(value), 'base64'), 'instance_key')
const stored = row("SELECT * FROM signing_keys WHERE alg = 'ES256'")
const pkcs8 = open(instance, Buffer.from(stored.private_key), stored.id)
const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
const home = row("SELECT * FROM organizations WHERE slug = 'default'")
const user = row("SELECT * FROM users WHERE organization_id = ? AND username = 'alice'", home.id)
const client = row("SELECT * FROM clients WHERE client_id = 'dev-service'")
const roles = db.query('SELECT * FROM user_roles WHERE user_id = ?').all(user.id)

// Copies rows that an earlier call of `gatehouse token` wrote.
const copy = (table, where, ...values) => {
  const { seq, ...last } = row(`SELECT * FROM ${table} WHERE ${where} ORDER BY rowid DESC LIMIT 1`, ...values)
  const fields = { ...last, id: Bun.randomUUIDv7() }
  const names = Object.keys(fields)
  db.query(`INSERT INTO ${table} (${names}) VALUES (${names.map(() => '?')})`).run(...Object.values(fields))
  return fields
}
const session = db.transaction(() => {
  copy('events', 'type = ?', 'session.created')
  return copy('sessions', 'user_id = ?', user.id)
})()
const iat = Math.floor(Date.now() / 1000)
const { client_id, scopes } = client
const claims = { sub: user.id, sid: session.id, client_id, scope: scopes, roles, iat, exp: iat + 3600 }
const encode = part => Buffer.from(JSON.stringify(part)).toString('base64url')
const input = `${encode({ alg: 'ES256', kid: stored.id, typ: 'at+jwt' })}.${encode(claims)}`
const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
db.transaction(() => copy('events', 'type = ?', 'token.issued'))()
console.log(`${input}.${signature.toString('base64url')}`)
db.run('PRAGMA wal_checkpoint(TRUNCATE)')
db.close()
