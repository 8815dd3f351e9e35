import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StorageError } from '#src/storage/errors.ts'
import { lockInstance } from '#src/storage/sqlite/lock.ts'

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
