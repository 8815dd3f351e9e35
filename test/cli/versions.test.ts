/** Tests an executable, a running server and a schema of different versions. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask } from '#test/storage/copies.ts'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const doctor = async (data_dir: string) => {
  const { code, stdout } = await gatehouse(['doctor'], { GATEHOUSE_DATA_DIR: data_dir })
  return { code, said: /^(\w+) +version +(.*)$/m.exec(stdout)?.slice(1) }
}

test('RUN-40 doctor names a server of another version, and a schema of another version', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const line = (await gatehouse(['--version'])).stdout.trim()
  expect(await doctor(data_dir)).toMatchObject({ said: ['ok', line] })

  const server = await serveExecutable({}, data_dir)
  expect(await doctor(data_dir)).toEqual({
    code: 0,
    said: ['ok', `${line}; the database has the schema of this version`],
  })

  const file = join(data_dir, 'server.json')
  const started = JSON.parse(readFileSync(file, 'utf8'))
  expect(started.version).toBe(line)
  writeFileSync(file, JSON.stringify({ ...started, version: '0.0.9 (0123456789ab, Bun 1.4.4)' }))
  expect(await doctor(data_dir)).toEqual({
    code: 0,
    said: [
      'warn',
      `this is ${line}, but 0.0.9 (0123456789ab, Bun 1.4.4) was started last: restart the server`,
    ],
  })

  await stop(server)
  using db = new Database(join(data_dir, 'gatehouse.db'))
  const [[name]] = db.query('SELECT max(name) FROM migrations').values() as [[string]]
  const [[hash]] = db.query('SELECT hash FROM migrations ORDER BY name DESC').values() as [[string]]
  db.run('DELETE FROM migrations WHERE name = ?', [name])
  const older = await doctor(data_dir)
  expect(older.code).toBe(1)
  expect(older.said).toEqual([
    'fail',
    expect.stringMatching(/has an older version\. Start the server to upgrade it\.$/),
  ])
  db.run('INSERT INTO migrations (name, hash) VALUES (?, ?)', [name, hash])
  db.run("INSERT INTO migrations (name, hash) VALUES ('9999_next.sql', '')")
  const newer = await doctor(data_dir)
  expect(newer.code).toBe(1)
  expect(newer.said).toEqual([
    'fail',
    expect.stringMatching(/by a newer version \(9999_next\.sql\)\. Use that version, or restore a backup/),
  ])
}, 30_000)

/** Makes a database look like a database of an older version: removes the row of the last migration. */
const AGE = 'DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations)'
const APPLIED = 'SELECT name, hash FROM migrations ORDER BY name'

test('a command and a second start with a seed do not upgrade the schema of a running server', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const seed = join(data_dir, 'seed.yaml')
  writeFileSync(seed, 'roles: [{ name: editor, permissions: [] }]')
  await using _ = await serveExecutable({}, data_dir)
  using db = new Database(join(data_dir, 'gatehouse.db'))
  db.run(AGE)
  const before = db.query(APPLIED).values()
  const env = { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_PORT: '0', GATEHOUSE_SEED_FILE: seed }
  expect(await gatehouse(['apply', seed], { GATEHOUSE_DATA_DIR: data_dir })).toMatchObject({
    code: 78,
    stderr: expect.stringMatching(/has an older version\. Start the server to upgrade it\.\n$/),
  })
  expect(await gatehouse(['serve'], env)).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('in use by another Gatehouse server'),
  })
  expect(db.query(APPLIED).values()).toEqual(before)
}, 30_000)

testOnPostgres(
  'a refused restore into PostgreSQL, and apply, leave the schema as it is; a new database takes the backup',
  async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
    const { url, drop } = await temporaryPostgres(true)
    const run = (...args: string[]) =>
      gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_DATABASE_URL: url })
    const [seed, backup] = [join(data_dir, 'seed.yaml'), join(data_dir, 'backup.db')]
    writeFileSync(seed, 'roles: [{ name: editor, permissions: [] }]')
    const server = await serveExecutable({ GATEHOUSE_DATABASE_URL: url }, data_dir)
    expect((await run('backup', backup)).code).toBe(0)
    await ask(url, AGE)
    const before = await ask(url, APPLIED)
    expect(await run('apply', seed)).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/ has an older version\. Start the server to upgrade it\.\n$/),
    })
    expect(await run('restore', backup, '--force')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('Stop all Gatehouse servers and commands first'),
    })
    expect(await ask(url, APPLIED)).toEqual(before)
    await stop(server)
    const newer = await ask(url, "INSERT INTO migrations VALUES ('9999_next.sql', '')", APPLIED)
    expect(await run('restore', backup, '--force')).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(
        /newer version \(9999_next\.sql\)\. .* restore a backup from before the upgrade into an empty database\.\n$/,
      ),
    })
    expect(await ask(url, APPLIED)).toEqual(newer)
    const name = new URL(url).pathname.slice(1)
    await ask(url.replace(name, 'postgres'), `DROP DATABASE ${name}`, `CREATE DATABASE ${name}`)
    expect(await run('restore', backup, '--force')).toMatchObject({ code: 0 })
    expect((await run('check')).code).toBe(0)
    await drop()
  },
  30_000,
)
