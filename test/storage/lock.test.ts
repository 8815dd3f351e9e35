import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StorageError } from '#src/storage/errors.ts'
import { LOCK_FILE, lockInstance, removeRestoreCopy } from '#src/storage/sqlite/lock.ts'

const holder = `
  const { lockInstance } = await import(${JSON.stringify(join(import.meta.dir, '../../src/storage/sqlite/lock.ts'))})
  lockInstance(process.argv[1])
  Bun.gc(true)
  console.log('locked')
  setInterval(() => {}, 1000)
`

test('R-17 one server for each data directory, until it stops or dies', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const unlock = lockInstance(folder)
  expect(() => lockInstance(folder)).toThrow(StorageError)
  unlock()
  const other = Bun.spawn(['bun', '-e', holder, folder], { stdout: 'pipe' })
  await other.stdout.getReader().read()
  expect(() => lockInstance(folder)).toThrow(`${folder} is in use by another Gatehouse server`)
  other.kill('SIGKILL')
  await other.exited
  lockInstance(folder)()
})

test('R-17 one server for each database, to which several data directories may link', () => {
  const folder = () => mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const [home, ...others] = [folder(), folder(), folder()]
  const linked = (name: string) => {
    writeFileSync(join(home, name), '')
    return others.map(other => {
      const data_dir = mkdtempSync(join(other, 'data-'))
      symlinkSync(join(home, name), join(data_dir, 'gatehouse.db'))
      return data_dir
    })
  }
  const [one = '', two = ''] = linked('gatehouse.db')
  const [three = '', four = ''] = linked('other.db')
  const unlock = [lockInstance(one), lockInstance(three)]
  for (const data_dir of [home, two, four])
    expect(() => lockInstance(data_dir)).toThrow(`${data_dir} is in use by another Gatehouse server`)
  for (const free of unlock) free()
  for (const data_dir of [home, four]) lockInstance(data_dir)()
})

test('R-17 the holder of the lock removes the copies that a killed restore or move has left', () => {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  symlinkSync(join(home, 'ids.db'), join(data_dir, 'gatehouse.db'))
  const copies: [folder: string, name: string][] = [
    [data_dir, 'restore.partial'],
    [data_dir, 'restore.partial-wal'],
    [home, 'ids.db.partial'],
    [home, 'ids.db.partial-journal'],
    [home, 'ids.db.partial-4711'],
  ]
  const leave = () => {
    for (const [folder, name] of copies) writeFileSync(join(folder, name), 'a copy')
  }
  const left = () => copies.filter(([folder, name]) => existsSync(join(folder, name)))
  writeFileSync(join(home, 'ids.db'), '')

  leave()
  const unlock = lockInstance(data_dir)
  expect([left(), existsSync(join(home, 'ids.db'))]).toEqual([[], true])
  leave()
  expect(() => lockInstance(data_dir)).toThrow(StorageError)
  removeRestoreCopy(data_dir)
  expect(left()).toEqual(copies)
  unlock()
  removeRestoreCopy(data_dir)
  expect(left()).toEqual([])
})

test('R-17 a server on PostgreSQL removes the copy of a killed move, and makes no lock without a copy', () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  removeRestoreCopy(data_dir)
  expect(readdirSync(data_dir)).toEqual([])
  writeFileSync(join(data_dir, 'gatehouse.db.partial-4711'), 'a copy')
  removeRestoreCopy(data_dir)
  expect(readdirSync(data_dir)).toEqual([LOCK_FILE])
})
