import { expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
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
import { openStore } from '#src/storage/open.ts'
import { backUp, makeFile, restoreBackup, verify } from '#src/storage/sqlite/backup.ts'
import { temporaryDatabase } from '#test/support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('a backup of the database is readable only by its owner, even if others can read the source', async () => {
  const [backup, target] = [join(folder, 'backup.db'), join(folder, 'gatehouse.db')]
  await backUp(await temporaryDatabase(), backup)
  expect(modeOf(backup)).toBe('600')
  chmodSync(backup, 0o644)
  await restoreBackup(backup, target, async partial => expect(modeOf(partial)).toBe('600'))
  expect([modeOf(target), modeOf(backup)]).toEqual(['600', '644'])
})

test('the write-ahead log of a moved database is not applied to another database', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  const path = join(data_dir, 'gatehouse.db')
  await (await openStore({ data_dir })).close()
  const backup = join(data_dir, 'backup.db')
  await backUp(path, backup)
  rmSync(path)
  for (const beside of ['-wal', '-shm']) rmSync(path + beside, { force: true })
  for (const name of ['wal', 'journal']) {
    const log = `${path}-${name}`
    writeFileSync(log, 'what was committed last')
    const refused = { exit_code: 78, message: expect.stringContaining(`${log} belongs to a database`) }
    await expect(openStore({ data_dir })).rejects.toMatchObject(refused)
    await expect(backUp(backup, path)).rejects.toMatchObject(refused)
    expect([existsSync(path), readFileSync(log, 'utf8')]).toEqual([false, 'what was committed last'])
    // A restore replaces the database together with its log.
    await restoreBackup(backup, path, async () => {})
    expect(existsSync(log)).toBeFalse()
    expect(verify(path).bytes).toBeGreaterThan(0)
    rmSync(path)
    // SQLite itself can leave an empty log, so an empty log is not refused.
    writeFileSync(log, '')
    await backUp(backup, path)
    rmSync(path)
    await (await openStore({ data_dir })).close()
    rmSync(path)
    rmSync(log, { force: true })
  }
})

test('a link to a database with a log is refused as the database is, and the target stays', async () => {
  const live = mkdtempSync(join(folder, 'live-'))
  const [path, link, target] = [join(live, 'gatehouse.db'), join(folder, 'link.db'), join(folder, 'kept.db')]
  const store = await openStore({ data_dir: live })
  expect(existsSync(`${path}-wal`)).toBeTrue()
  symlinkSync(path, link)
  writeFileSync(target, 'kept')
  for (const source of [path, link])
    await expect(restoreBackup(source, target, async () => {})).rejects.toMatchObject({
      exit_code: 1,
      message: expect.stringContaining(`${source} is a database with a log beside it`),
    })
  expect(readFileSync(target, 'utf8')).toBe('kept')
  await store.close()
})

test('two processes that write one file use separate partial files; partial files of a dead process are removed', async () => {
  const source = await temporaryDatabase()
  const target = join(folder, 'twice.db')
  const [living, dead] = [Bun.spawn(['sleep', '60']), Bun.spawn(['true'])]
  await dead.exited
  const [kept, left] = [`${target}.partial-${living.pid}`, `${target}.partial-${dead.pid}`]
  for (const name of [kept, left, `${left}-journal`]) writeFileSync(name, '')
  await backUp(source, target)
  expect([kept, left, `${left}-journal`].map(existsSync)).toEqual([true, false, false])
  living.kill()
  rmSync(target)
  const late = makeFile(target, async partial => {
    copyFileSync(source, partial)
    writeFileSync(target, 'of the other')
  })
  await expect(late).rejects.toMatchObject({
    message: `${target} was created by another process in the meantime.`,
  })
  expect(readFileSync(target, 'utf8')).toBe('of the other')
  expect(readdirSync(folder).filter(name => name.startsWith('twice.db.partial'))).toEqual([
    `twice.db.partial-${living.pid}`,
  ])
})
