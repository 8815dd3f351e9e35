// oidc-provider as its users run it with an SQL adapter: node, one SQLite file, WAL, every commit synced.
// Arguments: port, database file, JSON file with { jwks, clients }.
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Provider } from 'oidc-provider'

const [port, path, settings] = process.argv.slice(2)
const { jwks, clients } = JSON.parse(readFileSync(settings, 'utf8'))

const db = new DatabaseSync(path)
db.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS models (
    model TEXT NOT NULL, id TEXT NOT NULL, payload TEXT NOT NULL, grant_id TEXT, user_code TEXT, uid TEXT,
    expires_at INTEGER, PRIMARY KEY (model, id)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS models_grant ON models (grant_id) WHERE grant_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS models_user_code ON models (user_code) WHERE user_code IS NOT NULL;
  CREATE INDEX IF NOT EXISTS models_uid ON models (uid) WHERE uid IS NOT NULL;
  CREATE TABLE IF NOT EXISTS users (id TEXT PRIMARY KEY, claims TEXT NOT NULL) WITHOUT ROWID;
`)
db.prepare('INSERT OR IGNORE INTO users VALUES (?, ?)').run(
  'bench',
  JSON.stringify({
    preferred_username: 'bench',
    given_name: 'Ben',
    family_name: 'Ch',
    email: 'bench@example.com',
    email_verified: true,
  }),
)

const upsert = db.prepare('INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, ?, ?)')
const find = db.prepare('SELECT payload, expires_at FROM models WHERE model = ? AND id = ?')
const findByUserCode = db.prepare('SELECT payload, expires_at FROM models WHERE model = ? AND user_code = ?')
const findByUid = db.prepare('SELECT payload, expires_at FROM models WHERE model = ? AND uid = ?')
const remove = db.prepare('DELETE FROM models WHERE model = ? AND id = ?')
const removeGrant = db.prepare('DELETE FROM models WHERE grant_id = ?')
const consume = db.prepare(
  "UPDATE models SET payload = json_set(payload, '$.consumed', CAST(unixepoch() AS INTEGER)) WHERE model = ? AND id = ?",
)
const findUser = db.prepare('SELECT claims FROM users WHERE id = ?')

const now = () => Math.floor(Date.now() / 1000)
const payloadOf = row =>
  row && (row.expires_at === null || row.expires_at > now()) ? JSON.parse(row.payload) : undefined

const adapter = model => ({
  upsert: async (id, payload, expiresIn) => {
    upsert.run(
      model,
      id,
      JSON.stringify(payload),
      payload.grantId ?? null,
      payload.userCode ?? null,
      payload.uid ?? null,
      expiresIn ? now() + expiresIn : null,
    )
  },
  find: async id => payloadOf(find.get(model, id)),
  findByUserCode: async code => payloadOf(findByUserCode.get(model, code)),
  findByUid: async uid => payloadOf(findByUid.get(model, uid)),
  destroy: async id => void remove.run(model, id),
  consume: async id => void consume.run(model, id),
  revokeByGrantId: async grantId => void removeGrant.run(grantId),
})

const provider = new Provider(`http://localhost:${port}`, {
  adapter,
  jwks,
  clients,
  cookies: { keys: ['a-key-that-signs-cookies-in-the-benchmark'] },
  scopes: ['openid', 'profile', 'email', 'read'],
  claims: {
    openid: ['sub'],
    profile: ['preferred_username', 'given_name', 'family_name'],
    email: ['email', 'email_verified'],
  },
  conformIdTokenClaims: false,
  findAccount: async (_, id) => ({
    accountId: id,
    claims: async () => ({ sub: id, ...JSON.parse(findUser.get(id).claims) }),
  }),
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true },
  },
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  ttl: { AccessToken: 3600, ClientCredentials: 3600, RefreshToken: 2592000, Session: 86400, Grant: 2592000 },
})
provider.listen(Number(port), '127.0.0.1')
