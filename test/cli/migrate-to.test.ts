/**
 * Tests with the executable that an instance moves to PostgreSQL and back, and that PostgreSQL is backed up.
 */
import { afterAll, expect } from 'bun:test'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '#src/storage/open.ts'
import { addRole, gatehouse, roleNames, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

testOnPostgres(
  'to PostgreSQL, backed up and restored there, and back to SQLite',
  async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const run = (env: Record<string, string>, ...args: string[]) =>
      gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir, ...env })
    const { url, drop } = await temporaryPostgres(true)
    const on = { GATEHOUSE_DATABASE_URL: url }

    const first = await serveExecutable({}, data_dir)
    await addRole(first, 'before')
    expect(await run({}, 'migrate-to', url)).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('in use by another Gatehouse server'),
    })
    await stop(first)
    const command = await openStore({ data_dir })
    expect(await run({}, 'migrate-to', url)).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('in use by a Gatehouse command'),
    })
    await command.close()
    const moved = await run({}, 'migrate-to', url)
    expect(moved).toMatchObject({ code: 0, stderr: '' })
    expect(moved.stdout).toContain('rows copied and verified')
    expect(moved.stdout).not.toContain(url)

    const second = await serveExecutable(on, data_dir)
    expect(await roleNames(second)).toContain('before')
    const backup = join(folder, 'backup.db')
    expect(await run(on, 'backup', backup)).toMatchObject({ code: 0, stderr: '' })
    await addRole(second, 'after-the-backup')
    expect((await run(on, 'restore', backup, '--force')).code).toBe(75)
    // `migrate-to` has left the file. A backup of it would be old, and no server would see a change.
    const left = () =>
      new Bun.CryptoHasher('sha256').update(readFileSync(join(data_dir, 'gatehouse.db'))).digest('hex')
    const before = left()
    const seed = join(folder, 'seed.yaml')
    writeFileSync(seed, 'roles: [{ name: from-a-file, permissions: [] }]\n')
    const old = join(folder, 'old-backup.db')
    const given = [
      ['backup', old],
      ['restore', backup, '--force'],
      ['apply', seed],
      ['user', 'create', 'eve', '--email', 'eve@example.com'],
    ]
    const stderr = expect.stringContaining('Give this command its database_url, or remove server.json to use')
    expect(await Promise.all(given.map(args => run({}, ...args)))).toEqual(
      given.map(() => ({ code: 2, stdout: '', stderr })),
    )
    expect([left(), existsSync(old)]).toEqual([before, false])
    await stop(second)
    expect(await run(on, 'restore', backup)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('restore --force'),
    })
    expect(await run(on, 'restore', backup, '--force')).toMatchObject({ code: 0, stderr: '' })
    const checked = await run(on, 'check')
    expect(checked).toMatchObject({ code: 0, stderr: '' })
    expect(checked.stdout).toContain('totals are consistent')
    const rekeyed = await run(on, 'keys', 'rekey')
    expect(rekeyed).toMatchObject({ code: 0, stderr: '' })
    expect(rekeyed.stdout).toContain(
      `Copy ${join(data_dir, 'master.key')} to the other servers of this database`,
    )

    expect(await run(on, 'migrate-to', 'sqlite')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('move it away first'),
    })
    renameSync(join(data_dir, 'gatehouse.db'), join(data_dir, 'old.db'))
    // The write-ahead log of the old database must not be applied to the new database.
    writeFileSync(join(data_dir, 'gatehouse.db-wal'), 'what was committed last')
    expect(await run(on, 'migrate-to', 'sqlite')).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(
        'gatehouse.db-wal belongs to a database that is no longer in this folder',
      ),
    })
    renameSync(join(data_dir, 'gatehouse.db-wal'), join(data_dir, 'old.db-wal'))
    expect(await run(on, 'migrate-to', 'sqlite')).toMatchObject({ code: 0, stderr: '' })
    const third = await serveExecutable({}, data_dir)
    const names = await roleNames(third)
    expect(names).toContain('before')
    expect(names).not.toContain('after-the-backup')
    await stop(third)
    expect((await run({}, 'check')).code).toBe(0)
    await drop()
  },
  60_000,
)

testOnPostgres(
  'check and export create no instance in a database with tables only, and an instance can be moved into it',
  async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const run = (env: Record<string, string>, ...args: string[]) =>
      gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir, ...env })
    await stop(await serveExecutable({}, data_dir))
    // The new database is empty, as after an interrupted move.
    const { url, drop } = await temporaryPostgres()
    for (const command of ['check', 'export'])
      expect(await run({ GATEHOUSE_DATABASE_URL: url }, command)).toMatchObject({
        code: 78,
        stderr: expect.stringContaining('this database has no instance yet'),
      })
    expect(await run({}, 'migrate-to', url)).toMatchObject({ code: 0, stderr: '' })
    expect((await run({ GATEHOUSE_DATABASE_URL: url }, 'check')).code).toBe(0)
    await drop()
  },
  60_000,
)

testOnPostgres(
  'a move that is refused says why in one line, and leaves no file',
  async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const run = (env: Record<string, string>, ...args: string[]) =>
      gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir, ...env })
    const { url, drop } = await temporaryPostgres(true)
    await stop(await serveExecutable({}, data_dir))
    const secret = url.replace('gatehouse@', 'gatehouse:hidden-word@')
    const cases: [string[], Record<string, string>, number, string][] = [
      [['migrate-to', 'elsewhere'], {}, 2, 'migrate-to takes sqlite, or postgres://'],
      [
        ['migrate-to', 'postgres://u:hidden-word@127.0.0.1'],
        {},
        2,
        'migrate-to takes sqlite, or postgres://',
      ],
      [['migrate-to', `${secret}?sslmode=verify`], {}, 2, 'verify-ca, verify-full'],
      [['migrate-to', 'sqlite'], {}, 2, 'in SQLite already'],
      [['migrate-to', url], { GATEHOUSE_DATABASE_URL: url }, 2, 'names PostgreSQL already'],
      [['migrate-to', `${secret}_missing`], {}, 78, 'the database does not exist'],
      [
        ['migrate-to', 'postgres://u:hidden-word@127.0.0.1:1/db'],
        {},
        75,
        'no server answers at this address',
      ],
      [
        ['backup', join(folder, 'none.db')],
        { GATEHOUSE_DATABASE_URL: url },
        78,
        'has no instance. Start the server to create it.',
      ],
    ]
    for (const [args, env, code, text] of cases) {
      const finished = await run(env, ...args)
      expect({ args, code: finished.code }).toEqual({ args, code })
      expect(finished.stderr).toContain(text)
      expect(finished.stderr.trim().split('\n')).toHaveLength(1)
      expect(finished.stderr).not.toContain('hidden-word')
    }
    expect(readdirSync(folder).filter(name => name.startsWith('none.db'))).toEqual([])
    await drop()
  },
  60_000,
)

testOnPostgres('RUN-34 a refused seed leaves no instance in an empty database', async () => {
  const data_dir = join(folder, 'refused')
  const { url, drop } = await temporaryPostgres(true)
  const env = { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_DATABASE_URL: url }
  const apply = (roles: string) =>
    gatehouse(['apply', '-'], env, `users: [{ username: ada, email: ada@example.com, roles: [${roles}] }]`)
  expect(await apply('ghost')).toMatchObject({ code: 2, stderr: expect.stringContaining('no role ghost') })
  expect(existsSync(data_dir)).toBe(false)
  expect(await gatehouse(['user', 'list'], env)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('has no instance. Start the server to create it.'),
  })
  expect(await apply('user')).toMatchObject({ code: 0, stdout: expect.stringContaining('1 created') })
  await drop()
})
