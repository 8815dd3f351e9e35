/**
 * Copies a database to the other engine and back. No row is lost, and tokens, passwords and event MACs remain
 * valid.
 */
import { Database } from 'bun:sqlite'
import { describe, expect } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { checkEvents, checkKeys } from '#src/operations/check.ts'
import { inspectPostgres } from '#src/storage/postgres/inspect.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { copiedTables } from '#src/storage/transfer/copy.ts'
import { toFile, toPostgres } from '#src/storage/transfer/migrate-to.ts'
import { postgresSide } from '#src/storage/transfer/postgres.ts'
import { sqliteSide } from '#src/storage/transfer/sqlite.ts'
import { fill } from '#test/bench/fill.ts'
import { openApp, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addClient, addUser, logInTo } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { bearer, get, grantTokens, refresh } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'
import { walkEveryFlow } from '#test/support/walk.ts'
import { ask } from './copies.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let made = 0
const newFile = (): string => join(folder, `${++made}.db`)
const onProgress = (): void => {}

const rowsOf = (path: string): Record<string, unknown[]> => {
  using db = new Database(path, { readonly: true })
  const { read } = sqliteSide(db)
  return Object.fromEntries(
    copiedTables.map(table => [table.name, [...(read(table) as Iterable<[]>)].flat()]),
  )
}

/** Returns a server on which every flow has run, with one active session. */
const lived = async () => {
  const app = await settled()
  await walkEveryFlow(app)
  const client = await addClient(app, 'moved')
  const user = await addUser(app, 'mover')
  return { app, client, tokens: await grantTokens(app, client, user, { scope: 'openid offline_access' }) }
}
/**
 * Inserts a row with awkward values into each table that the walk leaves empty. A copy of an empty table
 * would prove nothing.
 */
const inventRows = async (path: string): Promise<void> => {
  using db = new Database(path)
  const side = sqliteSide(db)
  const idOf = (table: string): string => String(db.query(`SELECT id FROM "${table}"`).values()[0]?.[0])
  const values: Record<string, boolean | number | string> = {
    SQLiteBoolean: true,
    SQLiteInteger: 2 ** 52 + 1,
    SQLiteBlobBuffer: '\\x00ff0a5c',
  }
  for (const table of copiedTables) {
    if (db.query(`SELECT 1 FROM "${table.name}"`).values().length > 0) continue
    const row = Object.fromEntries(
      table.columns.map(({ name, columnType }) => [
        name,
        values[columnType] ?? '["Zoë 日本\\u2028\\\\",\n"🦊"]',
      ]),
    )
    const parents = { user_id: 'users', group_id: 'groups', role_id: 'roles' }
    for (const [name, parent] of Object.entries(parents)) if (name in row) row[name] = idOf(parent)
    if ('member_count' in row) row.member_count = 0
    await side.write(table, [row])
  }
}
const pathOf = (app: TestApp): string => Reflect.get(app.context.store, 'path')
/** Starts an app with both keys of a first start. */
const settled = async (): Promise<TestApp> => {
  const app = await startApp()
  await app.context.keys.published()
  return app
}

describe('from SQLite to PostgreSQL', () => {
  testOnPostgres(
    'and back: every row of every table is as it was',
    async () => {
      const { app } = await lived()
      await inventRows(pathOf(app))
      const { url, drop } = await temporaryPostgres(true)
      const rows = await toPostgres(pathOf(app), url, { replace: false, onProgress })
      expect(rows.users).toBeGreaterThan(1)
      expect(rows.events).toBeGreaterThan(20)
      const back = newFile()
      await toFile(url, back, { online: false, onProgress })
      const before = rowsOf(pathOf(app))
      expect(rowsOf(back)).toEqual(before)
      expect(Object.values(before).filter(rows => rows.length === 0)).toEqual([])
      using db = new Database(back)
      expect(inspect(db)).toEqual({ findings: [], rows })
      await drop()
    },
    30_000,
  )

  testOnPostgres('a database that shows bytes in the format `escape` is served and copied', async () => {
    const app = await settled()
    const { url, drop } = await temporaryPostgres()
    await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET bytea_output = 'escape'`)
    await toPostgres(pathOf(app), url, { replace: false, onProgress })
    const store = await openPostgres({ url, connections: 2 })
    expect(await checkKeys({ ...app.context, store })).toEqual({ findings: [], count: 2 })
    await store.close()
    const back = newFile()
    await toFile(url, back, { online: false, onProgress })
    expect(rowsOf(back)).toEqual(rowsOf(pathOf(app)))
    await drop()
  })

  testOnPostgres('the copy has one state of a file that another process writes to', async () => {
    const path = pathOf(await settled())
    const before = rowsOf(path)
    const { url, drop } = await temporaryPostgres()
    using other = new Database(path)
    const write = (stage: string): void => {
      if (stage !== 'copying roles') return
      other.run(`INSERT INTO roles (id, organization_id, name, permissions, created_at, updated_at)
        VALUES ('role_late', 'org_default', 'late', '[]', 1, 1)`)
    }
    await toPostgres(path, url, { replace: false, onProgress: write })
    const back = newFile()
    await toFile(url, back, { online: false, onProgress })
    expect(rowsOf(back)).toEqual(before)
    expect(rowsOf(path).roles).toHaveLength((before.roles?.length ?? 0) + 1)
    await drop()
  })

  testOnPostgres('tokens, passwords, sessions and the MACs of events stay valid', async () => {
    const { app, client, tokens } = await lived()
    const { url, drop } = await temporaryPostgres(true)
    await toPostgres(pathOf(app), url, { replace: false, onProgress })
    const store = await openPostgres({ url, connections: 2 })
    const moved = await openApp({ ...app.context, store })
    const there = {
      ...moved,
      clock: app.clock,
      call: (path: string, init?: RequestInit) =>
        moved.fetch(new Request(new URL(path, app.context.config.url), { redirect: 'manual', ...init })),
    } as TestApp
    expect((await get(there, '/oauth/userinfo', { headers: bearer(tokens.access_token) })).status).toBe(200)
    const renewed = await refresh(there, client, tokens.refresh_token)
    expect(renewed.status).toBe(200)
    expect((await refresh(there, client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    expect((await logInTo(openBrowser(there), 'moved', 'mover')).code).toBeString()
    expect((await checkEvents({ ...app.context, store })).findings).toEqual([])
    expect((await checkKeys({ ...app.context, store })).findings).toEqual([])
    expect((await inspectPostgres(url)).findings).toEqual([])
    await store.close()
    await drop()
  })

  testOnPostgres(
    'thousands of rows come in the same order with the same totals',
    async () => {
      const path = await temporaryDatabase()
      fill(path, 3_000, 4_000)
      const { url, drop } = await temporaryPostgres()
      const rows = await toPostgres(path, url, { replace: false, onProgress })
      expect(rows.users).toBe(3_000)
      const back = newFile()
      await toFile(url, back, { online: false, onProgress })
      expect(Bun.deepEquals(rowsOf(back), rowsOf(path))).toBeTrue()
      await drop()
    },
    30_000,
  )

  testOnPostgres('an existing instance stays, unless the call says to replace it', async () => {
    const [one, other] = [await settled(), await settled()]
    await addUser(one, 'only-one')
    await addUser(other, 'only-other')
    const { url, drop } = await temporaryPostgres()
    await toPostgres(pathOf(one), url, { replace: false, onProgress })
    await expect(toPostgres(pathOf(other), url, { replace: false, onProgress })).rejects.toThrow(
      'already has an instance',
    )
    const kept = newFile()
    await toFile(url, kept, { online: false, onProgress })
    expect(rowsOf(kept)).toEqual(rowsOf(pathOf(one)))
    await toPostgres(pathOf(other), url, { replace: true, onProgress })
    const replaced = newFile()
    await toFile(url, replaced, { online: false, onProgress })
    expect(rowsOf(replaced)).toEqual(rowsOf(pathOf(other)))
    await drop()
  })

  testOnPostgres('nothing is copied while a server is connected, except for a backup', async () => {
    const app = await settled()
    const { url, drop } = await temporaryPostgres()
    const server = await openPostgres({ url, connections: 1 })
    const inUse = {
      exit_code: 75,
      message: expect.stringContaining('Stop all Gatehouse servers and commands first'),
    }
    await expect(toPostgres(pathOf(app), url, { replace: true, onProgress })).rejects.toMatchObject(inUse)
    const file = newFile()
    await expect(toFile(url, file, { online: false, onProgress })).rejects.toMatchObject(inUse)
    expect(existsSync(file)).toBeFalse()
    await toFile(url, file, { online: true, onProgress })
    expect(existsSync(file)).toBeTrue()
    await server.close()
    await drop()
  })

  testOnPostgres(
    'a server that starts meanwhile waits, with its reads and its writes, in either direction',
    async () => {
      const app = await settled()
      const { url, drop } = await temporaryPostgres()
      const tries = (lock: string): string =>
        Bun.spawnSync(
          [
            process.execPath,
            '-e',
            `await new Bun.SQL(process.env.URL).unsafe('DO $$BEGIN LOCK TABLE ${lock} MODE NOWAIT; END$$')`,
          ],
          { env: { URL: url } },
        ).stderr.toString()
      const stages: string[] = []
      const look = (stage: string): void => {
        if (stages.push(stage) > 1) return
        expect(tries('write_lock IN ROW EXCLUSIVE')).toContain('55P03')
        expect(tries('settings IN ACCESS SHARE')).toContain('55P03')
      }
      await toPostgres(pathOf(app), url, { replace: false, onProgress: look })
      expect(stages.splice(0)).not.toEqual([])
      await toFile(url, newFile(), { online: false, onProgress: look })
      expect(stages).not.toEqual([])
      await drop()
    },
  )

  testOnPostgres('a copy waits for the process of a connection whose client has gone', async () => {
    const app = await settled()
    const { url, drop } = await temporaryPostgres()
    await toPostgres(pathOf(app), url, { replace: false, onProgress })
    const gone = new SQL(url, { max: 1, connection: { application_name: 'gatehouse' } })
    const other = new SQL(url, { max: 1 })
    const busy = gone.unsafe('SELECT pg_sleep(0.6)').catch(() => {})
    await until(async () => {
      const rows = await other.unsafe("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(0.6)'")
      return rows.length > 0
    })
    await gone.close({ timeout: 0 })
    await busy
    await other.close()
    const file = newFile()
    await toFile(url, file, { online: false, onProgress })
    expect(existsSync(file)).toBeTrue()
    await drop()
  })

  testOnPostgres(
    'a file of an older version is refused by its name, and nothing is copied',
    async () => {
      const path = await temporaryDatabase()
      {
        using db = new Database(path)
        db.run('DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations)')
      }
      const { url, drop } = await temporaryPostgres(true)
      await expect(toPostgres(path, url, { replace: false, onProgress })).rejects.toMatchObject({
        message: `${path} has an older version. Start the server to upgrade it.`,
        exit_code: 78,
      })
      const sql = new SQL({ url, max: 1 })
      expect(
        await sql.unsafe('SELECT tablename FROM pg_tables WHERE schemaname = current_schema()'),
      ).toHaveLength(0)
      await sql.close()
      await drop()
    },
    30_000,
  )

  testOnPostgres('a batch of the largest pictures has less than 20 MB on both sides', async () => {
    const table = copiedTables.find(({ name }) => name === 'stored_posts')
    if (!table) throw new Error('no such table')
    // A picture of 256 KiB is this text in hexadecimal. A stored POST needs no user.
    const large = { kind: 'x', body: 'x'.repeat(512 * 1024), expires_at: 1 }
    const rows = Array.from({ length: 100 }, (_, i) => ({ handle_hash: `${i}`, ...large }))
    using db = new Database(await temporaryDatabase())
    const { url, drop } = await temporaryPostgres()
    const sql = new SQL({ url, max: 1 })
    const connection = await sql.reserve()
    await connection.unsafe('BEGIN')
    for (const { read, write } of [sqliteSide(db), postgresSide(connection)]) {
      await write(table, rows)
      let count = 0
      for await (const batch of read(table)) {
        count += batch.length
        expect(JSON.stringify(batch).length).toBeLessThan(20e6)
      }
      expect(count).toBe(rows.length)
    }
    connection.release()
    await sql.close()
    await drop()
  })

  testOnPostgres('a difference after the copy undoes the copy', async () => {
    const app = await settled()
    const { url, drop } = await temporaryPostgres()
    const sql = new SQL({ url, max: 1 })
    await sql.unsafe(`CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.name = NEW.name || '!'; RETURN NEW; END $$`)
    await sql.unsafe('CREATE TRIGGER spoil BEFORE INSERT ON roles FOR EACH ROW EXECUTE FUNCTION spoil()')
    await expect(toPostgres(pathOf(app), url, { replace: false, onProgress })).rejects.toMatchObject({
      exit_code: 1,
      message: expect.stringContaining('The copy of roles differs from the original'),
    })
    const [left] = await sql.unsafe('SELECT count(*)::int AS users FROM organizations')
    expect(left.users).toBe(0)
    await sql.close()
    await drop()
  })
})

describe('R-13 a backup of PostgreSQL', () => {
  testOnPostgres(
    'has one state of it while others write, and is the file that SQLite starts with',
    async () => {
      const app = await settled()
      const { url, drop } = await temporaryPostgres()
      await toPostgres(pathOf(app), url, { replace: false, onProgress })
      const store = await openPostgres({ url, connections: 3 })
      const moved = await openApp({ ...app.context, store })
      const addRole = (name: string) =>
        store.write(async tx => {
          const now = app.clock.now()
          const organization_id = 'org_default' as const
          const permissions: string[] = []
          const row = { organization_id, permissions, created_at: now, updated_at: now }
          await tx.insert(tx.tables.roles).values([
            { id: `role_${name}_a`, name: `${name}-a`, ...row },
            { id: `role_${name}_b`, name: `${name}-b`, ...row },
          ])
        })
      let writing = true
      let acknowledged = 0
      const writer = (async () => {
        for (; writing; acknowledged++) await addRole(`n${acknowledged}`)
      })()
      for (let round = 0; round < 3; round++) {
        const [file, before] = [newFile(), acknowledged]
        await toFile(url, file, { online: true, onProgress })
        using db = new Database(file)
        expect(inspect(db).findings).toEqual([])
        const [[a, b]] = db
          .query(
            "SELECT count(*) FILTER (WHERE name LIKE 'n%-a'), count(*) FILTER (WHERE name LIKE 'n%-b') FROM roles",
          )
          .values() as [[number, number]]
        expect(a).toBe(b)
        expect(a).toBeGreaterThanOrEqual(before)
        const restored = await openSqlite({ path: file })
        expect((await checkKeys({ ...app.context, store: restored })).findings).toEqual([])
        await restored.close()
      }
      writing = false
      await writer
      await moved.context.store.close()
      await drop()
    },
    30_000,
  )
})
