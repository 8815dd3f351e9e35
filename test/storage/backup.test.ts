import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backUp, restore, verify } from '#src/storage/backup.ts'
import { openStore } from '#src/storage/open.ts'
import { temporaryDatabase } from '#test/support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('a database is for its owner alone, whoever may read the backup that it comes from', async () => {
  const [backup, target] = [join(folder, 'backup.db'), join(folder, 'gatehouse.db')]
  await backUp(await temporaryDatabase(), backup)
  expect(modeOf(backup)).toBe('600')
  chmodSync(backup, 0o644)
  await restore(backup, target, async partial => expect(modeOf(partial)).toBe('600'))
  expect([modeOf(target), modeOf(backup)]).toEqual(['600', '644'])
})

test('the log of a database that was moved away gets into no other one', async () => {
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
    // What replaces is to replace all of it.
    await restore(backup, path, async () => {})
    expect(existsSync(log)).toBeFalse()
    expect(verify(path).bytes).toBeGreaterThan(0)
    rmSync(path)
    // SQLite leaves an empty one.
    writeFileSync(log, '')
    await backUp(backup, path)
    rmSync(path)
    await (await openStore({ data_dir })).close()
    rmSync(path)
    rmSync(log, { force: true })
  }
})
