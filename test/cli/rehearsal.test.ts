import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rehearse } from '#src/cli/rehearsal.ts'
import { readSeed } from '#src/seed/read.ts'
import { startApp } from '#test/support/app.ts'

test('a rehearsal removes folders from before the start of its process, unless their process runs', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const ended = Bun.spawn(['true'])
  await ended.exited
  const folder = (pid: number, age: 'old' | 'new'): string => {
    const name = `.rehearsal-${pid}-${age}`
    mkdirSync(join(data_dir, name))
    if (age === 'old') utimesSync(join(data_dir, name), 1, 1)
    return name
  }
  folder(ended.pid, 'old')
  folder(process.pid, 'old')
  const kept = [folder(process.ppid, 'old'), folder(ended.pid, 'new'), folder(process.pid, 'new')]
  const { config } = (await startApp({ data_dir })).context
  await rehearse(config, readSeed({ roles: [{ name: 'editor', permissions: [] }] }))
  expect(readdirSync(data_dir).sort()).toEqual(kept.sort())
})
