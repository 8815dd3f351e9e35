import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { openStore } from '#src/storage/open.ts'
import { addRole, gatehouse, roleNames, serveExecutable, stop } from '#test/support/executable.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let made = 0
const path = (name: string): string => join(folder, `${++made}-${name}`)

const run = (data_dir: string, ...args: string[]) => gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })

/** Returns the data directory of a stopped instance. */
const stopped = async (): Promise<string> => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  await stop(await serveExecutable({}, data_dir))
  return data_dir
}

describe('backup and restore', () => {
  test('R-13 a backup during writes has every write acknowledged before it began', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const server = await serveExecutable({}, data_dir)
    let writing = true
    let acknowledged = 0
    const writer = (async () => {
      for (; writing; acknowledged++) expect((await addRole(server, `role-${acknowledged}`)).status).toBe(201)
    })()
    const backups: { file: string; before: number }[] = []
    for (let round = 0; round < 5; round++) {
      const [file, before] = [path('backup.db'), acknowledged]
      const { code, stdout, stderr } = await run(data_dir, 'backup', file)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain('verified')
      backups.push({ file, before })
    }
    writing = false
    await writer
    await stop(server)
    expect(acknowledged).toBeGreaterThan(5)
    for (const { file, before } of backups) {
      expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
      expect((await run(data_dir, 'restore', file, '--force')).code).toBe(0)
      const restored = new Database(join(data_dir, 'gatehouse.db'), { readonly: true })
      const [[count]] = restored.query("SELECT count(*) FROM roles WHERE name LIKE 'role-%'").values() as [
        [number],
      ]
      restored.close()
      expect(count).toBeGreaterThanOrEqual(before)
      expect((await run(data_dir, 'check')).code).toBe(0)
    }
  }, 60_000)

  test('a restored instance serves the data of the backup', async () => {
    const data_dir = mkdtempSync(join(folder, 'data-'))
    const file = path('backup.db')
    const server = await serveExecutable({}, data_dir)
    await addRole(server, 'kept')
    await run(data_dir, 'backup', file)
    await addRole(server, 'later')
    expect(await run(data_dir, 'restore', file, '--force')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('in use by another Gatehouse server'),
    })
    await stop(server)
    expect(await run(data_dir, 'restore', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--force replaces it'),
    })
    expect((await run(data_dir, 'restore', file, '--force')).code).toBe(0)
    await using again = await serveExecutable({}, data_dir)
    const names = await roleNames(again)
    expect(names).toContain('kept')
    expect(names).not.toContain('later')
  }, 30_000)

  test('while a command has the database open, nothing is restored', async () => {
    const data_dir = await stopped()
    const file = path('backup.db')
    await run(data_dir, 'backup', file)
    const before = statSync(join(data_dir, 'gatehouse.db')).ino
    const command = await openStore({ data_dir })
    expect(await run(data_dir, 'restore', file, '--force')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('gatehouse.db is in use by a Gatehouse command'),
    })
    expect(readdirSync(data_dir).filter(name => name.includes('partial'))).toEqual([])
    expect(statSync(join(data_dir, 'gatehouse.db')).ino).toBe(before)
    await command.close()
    expect((await run(data_dir, 'restore', file, '--force')).code).toBe(0)
    expect((await run(data_dir, 'check')).code).toBe(0)
  }, 30_000)

  test('a restore replaces the file to which the database is a link, and keeps the link', async () => {
    const data_dir = await stopped()
    const file = path('backup.db')
    await run(data_dir, 'backup', file)
    const database = join(data_dir, 'gatehouse.db')
    const moved = join(mkdtempSync(join(folder, 'volume-')), 'moved.db')
    renameSync(database, moved)
    symlinkSync(moved, database)
    const before = statSync(moved).ino
    expect(await run(data_dir, 'restore', file, '--force')).toMatchObject({ code: 0, stderr: '' })
    expect([lstatSync(database).isSymbolicLink(), statSync(moved).ino === before]).toEqual([true, false])
    expect((await run(data_dir, 'check')).code).toBe(0)
    rmSync(moved)
    writeFileSync(`${moved}-wal`, 'log of the lost database')
    const refused = await run(data_dir, 'restore', file)
    expect([refused.code, refused.stderr]).toEqual([78, expect.stringContaining(`${moved}-wal belongs`)])
    rmSync(`${moved}-wal`)
    expect(await run(data_dir, 'restore', file)).toMatchObject({ code: 0, stderr: '' })
    expect([lstatSync(database).isSymbolicLink(), existsSync(moved)]).toEqual([true, true])
    expect((await run(data_dir, 'check')).code).toBe(0)
  }, 30_000)

  test('R-06 an incomplete or foreign backup is refused, and the database stays', async () => {
    const data_dir = await stopped()
    const good = path('good.db')
    expect((await run(data_dir, 'backup', good)).code).toBe(0)
    const truncated = path('truncated.db')
    copyFileSync(good, truncated)
    truncateSync(truncated, Math.floor(statSync(good).size / 8192) * 4096)
    const foreign = path('foreign.db')
    new Database(foreign, { create: true }).run('CREATE TABLE theirs (a)').valueOf()
    const newer = path('newer.db')
    copyFileSync(good, newer)
    new Database(newer).run("INSERT INTO migrations (name, hash) VALUES ('9999_later.sql', '')").valueOf()
    const text = path('text.db')
    writeFileSync(text, 'not a database at all, but long enough to be read as the header of one'.repeat(9))
    const empty = path('empty.db')
    writeFileSync(empty, '')
    const withLog = path('live.db')
    copyFileSync(good, withLog)
    writeFileSync(`${withLog}-wal`, '')
    const before = readFileSync(join(data_dir, 'gatehouse.db'))
    for (const [file, reason] of [
      [truncated, 'malformed'],
      [foreign, 'another program'],
      [empty, 'is empty.'],
      [newer, 'newer version'],
      [text, 'not an SQLite database'],
      [path('absent.db'), 'no such file'],
      [folder, 'no such file'],
      [join(data_dir, 'gatehouse.db'), 'is the database itself'],
      [withLog, 'with a log beside it'],
    ] as const) {
      const { code, stderr } = await run(data_dir, 'restore', file, '--force')
      expect([1, 78]).toContain(code)
      expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(reason)])
      expect(readFileSync(join(data_dir, 'gatehouse.db')).equals(before)).toBe(true)
    }
    expect(existsSync(join(data_dir, 'gatehouse.db.partial'))).toBe(false)
    // The message of a refusal names the database that cannot be backed up. The refused command leaves no
    // file.
    for (const [file, reason] of [
      [truncated, 'is damaged: '],
      [newer, 'newer version'],
      [foreign, 'another program'],
    ] as const) {
      const other = mkdtempSync(join(folder, 'data-'))
      copyFileSync(file, join(other, 'gatehouse.db'))
      const target = path('none.db')
      const { stderr } = await run(other, 'backup', target)
      expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(reason)])
      expect(stderr).toStartWith(`gatehouse: ${join(other, 'gatehouse.db')} `)
      expect(readdirSync(folder).filter(name => name.startsWith(basename(target)))).toEqual([])
    }
    expect((await run(data_dir, 'backup', good)).code).toBe(1)
    expect((await run(data_dir, 'backup', join(folder, 'no/such/folder.db'))).code).toBe(1)
    expect((await run(path('nothing'), 'backup', path('b.db'))).code).toBe(78)
  }, 30_000)

  test('a database from an interrupted first start is no instance, and its backup is refused', async () => {
    const [data_dir, begun] = [await stopped(), mkdtempSync(join(folder, 'data-'))]
    await (await openStore({ data_dir: begun })).close()
    copyFileSync(join(data_dir, 'master.key'), join(begun, 'master.key'))
    const refused = (reason: string) => ({ code: 78, stderr: expect.stringContaining(reason) })
    for (const args of [['check'], ['keys', 'list']])
      expect(await run(begun, ...args)).toMatchObject(refused('this database has no instance yet'))
    const file = path('backup.db')
    expect((await run(begun, 'backup', file)).code).toBe(0)
    expect(await run(data_dir, 'restore', file, '--force')).toMatchObject(
      refused('before the database had an instance'),
    )
    expect((await run(data_dir, 'check')).code).toBe(0)
    await stop(await serveExecutable({}, begun))
    expect((await run(begun, 'check')).code).toBe(0)
  }, 30_000)

  test('a backup is not restored without its master key or with another key', async () => {
    const data_dir = await stopped()
    const file = path('backup.db')
    await run(data_dir, 'backup', file)
    const fresh = path('fresh')
    const { code, stderr } = await run(fresh, 'restore', file)
    expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringContaining('there is no master key') })
    writeFileSync(join(fresh, 'master.key'), Buffer.alloc(32, 5).toString('base64'))
    expect(await run(fresh, 'restore', file)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('The master key does not belong'),
    })
    copyFileSync(join(data_dir, 'master.key'), join(fresh, 'master.key'))
    // The database was moved away without its write-ahead log. The log can contain commits that exist nowhere
    // else.
    writeFileSync(join(fresh, 'gatehouse.db-wal'), 'what was committed last')
    expect(await run(fresh, 'restore', file)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(
        'gatehouse.db-wal belongs to a database that is no longer in this folder',
      ),
    })
    rmSync(join(fresh, 'gatehouse.db-wal'))
    expect((await run(fresh, 'restore', file)).code).toBe(0)
  })
})
