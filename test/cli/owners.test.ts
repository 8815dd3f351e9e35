/**
 * Tests commands that root runs for a service. The user of the service must be able to read the files that
 * these commands write.
 */
import { afterAll, expect, test } from 'bun:test'
import {
  chownSync,
  existsSync,
  lchownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finishChange } from '#src/cli/instance.ts'
import type { Config } from '#src/config.ts'
import { followed, giveToOwner } from '#src/storage/data-dir.ts'
import { openStore } from '#src/storage/open.ts'
import { lockInstance } from '#src/storage/sqlite/lock.ts'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** User and group that own the data directory. */
const [uid, gid] = [65_534, 65_533]

const isRoot = process.getuid?.() === 0
const leaveOut = () => console.log('left out: only root can give a directory to another user')

/** Gives the folder and its files to the owner. */
const give = (path: string): void => {
  for (const each of [path, ...readdirSync(path).map(name => join(path, name))]) lchownSync(each, uid, gid)
}

/** Returns the names of files that another user or group owns. */
const foreign = (path: string): string[] =>
  readdirSync(path).filter(name => {
    const file = statSync(join(path, name))
    return file.uid !== uid || file.gid !== gid
  })

test('restore and keys rekey leave files of the owner of the data directory', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const run = (...args: string[]) => gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })
  await stop(await serveExecutable({}, data_dir))
  const backup = join(folder, 'backup.db')
  expect((await run('backup', backup)).code).toBe(0)
  rmSync(join(data_dir, 'gatehouse.lock'))
  give(data_dir)
  expect(await run('restore', backup, '--force')).toMatchObject({ code: 0, stderr: '' })
  expect(await run('keys', 'rekey')).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(data_dir)).toContain('gatehouse.lock')
  expect(foreign(data_dir)).toEqual([])
  // A backup contains all password hashes, and a new key opens the database. The user who makes these files
  // owns them, even in a folder of another user.
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  give(elsewhere)
  expect((await run('backup', join(elsewhere, 'backup.db'))).code).toBe(0)
  expect((await run('keys', 'rekey', '--new-key-file', join(elsewhere, 'new.key'))).code).toBe(0)
  for (const name of ['backup.db', 'new.key']) expect(statSync(join(elsewhere, name)).uid).toBe(0)
}, 30_000)

test('apply to a new instance leaves files of the owner of the data directory', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  // The owner of the directory has put a link in the place of a file that the command writes.
  const outside = join(folder, 'outside')
  writeFileSync(outside, 'kept')
  symlinkSync(outside, join(data_dir, 'admin-client.json.new'))
  give(data_dir)
  const seed = join(folder, 'seed.yaml')
  await Bun.write(seed, 'roles: [{ name: editor, permissions: [] }]')
  expect(await gatehouse(['apply', seed], { GATEHOUSE_DATA_DIR: data_dir })).toMatchObject({ code: 0 })
  expect(readdirSync(data_dir)).toContain('admin-client.json')
  expect(foreign(data_dir)).toEqual([])
  expect([readFileSync(outside, 'utf8'), statSync(outside).uid]).toEqual(['kept', 0])
}, 30_000)

test('a link in the place of a new file does not give another file away', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const outside = join(folder, 'secret')
  writeFileSync(outside, 'kept')
  linkSync(outside, join(data_dir, 'hard'))
  symlinkSync(outside, join(data_dir, 'symbolic'))
  give(data_dir)
  chownSync(outside, 0, 0)
  for (const name of ['hard', 'symbolic']) giveToOwner(join(data_dir, name))
  expect(statSync(outside).uid).toBe(0)
})

test('root follows no link that the owner of the data directory made in the place of a database or lock', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const [missing, outside] = [join(folder, 'missing'), join(folder, 'outside.db')]
  writeFileSync(outside, '')
  symlinkSync(missing, join(data_dir, 'gatehouse.lock'))
  give(data_dir)
  expect(() => lockInstance(data_dir)).toThrow('cannot be written to (ELOOP)')
  symlinkSync(outside, join(data_dir, 'gatehouse.db'))
  give(data_dir)
  expect(() => lockInstance(data_dir)).toThrow('gatehouse.db is a link of another user')
  await expect(openStore({ data_dir })).rejects.toThrow('cannot be written to (ELOOP)')
  expect(() => followed(join(data_dir, 'gatehouse.db'))).toThrow('is a link of another user')
  expect([existsSync(missing), statSync(outside).size]).toEqual([false, 0])
  // A link that belongs to root is allowed, because root may keep the database in another folder.
  lchownSync(join(data_dir, 'gatehouse.db'), 0, 0)
  await (await openStore({ data_dir })).close()
  expect(statSync(outside).size).toBeGreaterThan(0)
})

test('the copy of an old master key that belongs to another user stays with root', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const other = join(folder, 'other.key')
  writeFileSync(other, 'key of root')
  symlinkSync(other, join(data_dir, 'master.key'))
  writeFileSync(join(data_dir, 'master.key.next'), 'next key')
  give(data_dir)
  const old = finishChange({ data_dir } as Config) ?? ''
  expect([readFileSync(old, 'utf8'), statSync(old).uid]).toEqual(['key of root', 0])
  expect(readFileSync(join(data_dir, 'master.key'), 'utf8')).toBe('next key')
  expect([readFileSync(other, 'utf8'), statSync(other).uid]).toEqual(['key of root', 0])
})

testOnPostgres('migrate-to sqlite leaves a database of the owner of the data directory', async () => {
  if (!isRoot) return leaveOut()
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const { url, drop } = await temporaryPostgres(true)
  const env = { GATEHOUSE_DATABASE_URL: url }
  await stop(await serveExecutable(env, data_dir))
  give(data_dir)
  const moved = await gatehouse(['migrate-to', 'sqlite'], { ...env, GATEHOUSE_DATA_DIR: data_dir })
  expect(moved).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(data_dir)).toContain('gatehouse.db')
  expect(foreign(data_dir)).toEqual([])
  await drop()
})
