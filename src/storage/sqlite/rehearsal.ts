import { Database } from 'bun:sqlite'
import type { RehearsedUsers } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** The tables of which all rows are copied. */
const OBJECTS = [
  'settings',
  'signing_keys',
  'organizations',
  'organization_assets',
  'login_domains',
  'roles',
  'groups',
  'group_roles',
  'clients',
  'dynamic_clients',
  'apis',
  'identity_providers',
  'webhooks',
  'purges',
] as const satisfies (keyof Tables)[]

const CHOSEN = `WITH named AS (
    SELECT coalesce((SELECT id FROM live.organizations WHERE slug = value ->> 'organization'),
      value ->> 'organization') AS organization_id, value ->> 'username' AS username, value ->> 'email' AS email
    FROM json_each(?1)
  )
  SELECT u.id FROM named n JOIN live.users u ON u.organization_id = n.organization_id AND u.username_fold = n.username
  UNION SELECT u.id FROM named n JOIN live.users u ON u.organization_id = n.organization_id AND u.email_fold = n.email
  UNION SELECT value FROM json_each(?2)
  UNION SELECT user_id FROM live.group_members
    WHERE group_id IN (SELECT id FROM live.groups
      WHERE id IN (SELECT value FROM json_each(?3)) OR name IN (SELECT value FROM json_each(?3)))`

/**
 * Returns an in-memory copy of the database at `path`. The copy has the objects that administrators make, and
 * the users that `users` names. It has no sessions, events or other records of use. Most rows of a database
 * are records of use, and a rehearsal does not read them. The copy has no triggers, so a rehearsed write does
 * not change totals.
 */
export const copyForRehearsal = (path: string, users: RehearsedUsers): Database => {
  const db = new Database(':memory:')
  db.run('ATTACH ? AS live', [path])
  db.run('PRAGMA busy_timeout = 5000')
  // All reads in one transaction see the same state.
  db.transaction(() => {
    const made = db.query<{ sql: string }, []>(
      `SELECT sql FROM live.sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL
        AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'users_search*' ORDER BY type DESC`,
    )
    for (const { sql } of made.all()) db.run(sql)
    for (const name of OBJECTS) db.run(`INSERT INTO main.${name} SELECT * FROM live.${name}`)
    if (users === 'all') db.run('CREATE TEMP TABLE chosen AS SELECT id FROM live.users')
    else {
      const given = [users.named, users.ids, users.groups].map(list => JSON.stringify(list))
      db.run('CREATE TEMP TABLE chosen (id TEXT)')
      db.run(`INSERT INTO chosen ${CHOSEN}`, given)
    }
    db.run('INSERT INTO main.users SELECT * FROM live.users WHERE id IN (SELECT id FROM chosen)')
    for (const name of ['user_roles', 'group_members'])
      db.run(`INSERT INTO main.${name} SELECT * FROM live.${name} WHERE user_id IN (SELECT id FROM chosen)`)
  })()
  db.run('DETACH live')
  db.run('PRAGMA foreign_keys = ON')
  return db
}
