import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rehearse } from '#src/cli/rehearsal.ts'
import { readSeed } from '#src/seed/read.ts'
import { startApp } from '#test/support/app.ts'

test('a rehearsal removes folders of more than an hour ago, unless their process runs', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const ended = Bun.spawn(['true'])
  await ended.exited
  const now = Date.now() / 1000
  const folder = (pid: number, age: 'old' | 'recent' | 'new'): string => {
    const name = `.rehearsal-${pid}-${age}`
    mkdirSync(join(data_dir, name))
    const changed_at = { old: now - 3700, recent: now - 3500, new: now }[age]
    utimesSync(join(data_dir, name), changed_at, changed_at)
    return name
  }
  folder(ended.pid, 'old')
  folder(process.pid, 'old')
  const kept = [folder(process.ppid, 'old')]
  for (const age of ['recent', 'new'] as const) kept.push(folder(ended.pid, age), folder(process.pid, age))
  const { config } = (await startApp({ data_dir })).context
  await rehearse(config, readSeed({ roles: [{ name: 'editor', permissions: [] }] }))
  expect(readdirSync(data_dir).sort()).toEqual(kept.sort())
})
