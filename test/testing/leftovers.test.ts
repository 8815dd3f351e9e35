import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockInstance } from '#src/storage/sqlite/lock.ts'
import { inTemporaryDir, removeLeftovers } from '#src/testing/leftovers.ts'

const parent = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(parent, { recursive: true }))

const make = (name: string): string => {
  const path = join(parent, name)
  mkdirSync(path)
  writeFileSync(join(path, 'gatehouse.db'), '')
  return path
}
const age = (path: string): void => utimesSync(path, new Date(0), new Date(0))

/** Starts a process that locks the directory, and kills it. */
const killHolder = async (path: string): Promise<void> => {
  const lock = join(import.meta.dir, '../../src/storage/sqlite/lock.ts')
  const script = `const { lockInstance } = await import(${JSON.stringify(lock)}); lockInstance(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 1000)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  for await (const chunk of child.stdout) if (new TextDecoder().decode(chunk).includes('held')) break
  age(path)
  removeLeftovers(parent)
  expect(existsSync(path)).toBe(true)
  child.kill('SIGKILL')
  await child.exited
}

test('files of a killed development server are removed; files in use, new files and files of another user stay', async () => {
  const killed = make('gatehouse-dev-killed')
  await killHolder(killed)
  const own = make('gatehouse-dev-ownown')
  const unlock = lockInstance(own)
  age(own)
  const fresh = make('gatehouse-dev-fresh1')
  // Another process has created the lock file and not yet taken the lock.
  const starting = make('gatehouse-dev-start1')
  writeFileSync(join(starting, 'gatehouse.lock'), '')
  const unlocked = make('gatehouse-dev-old123')
  age(unlocked)
  const kept = make('elsewhere')
  symlinkSync(kept, join(parent, 'gatehouse-dev-link12'))
  age(kept)

  removeLeftovers(parent)
  expect([killed, unlocked].map(existsSync)).toEqual([false, false])
  expect([own, fresh, starting, kept].map(existsSync)).toEqual([true, true, true, true])
  expect(existsSync(join(kept, 'gatehouse.db'))).toBe(true)

  // The check did not release the lock.
  expect(() => lockInstance(own)).toThrow('in use')
  unlock()
  age(own)
  removeLeftovers(parent)
  expect(existsSync(own)).toBe(false)
})

test('the temporary directory of a start that fails is removed, and a full disk is named with its remedy', async () => {
  let dir = ''
  const failing = (error: Error) =>
    inTemporaryDir(path => {
      dir = path
      expect(existsSync(path)).toBe(true)
      return Promise.reject(error)
    })
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  for (const [error, said] of [
    [new Error('wrong seed'), 'wrong seed'],
    [full, `${tmpdir()}: a temporary directory cannot be created or written (ENOSPC). Set TMPDIR to`],
  ] as const) {
    await expect(failing(error)).rejects.toThrow(said)
    expect(existsSync(dir)).toBe(false)
  }
})
