import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveExecutable } from '#test/support/executable.ts'

const root = join(import.meta.dir, '../..')

const check = async (env: Record<string, string>) => {
  const child = Bun.spawn([process.execPath, '.ci/free.ts'], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return [
    await child.exited,
    await new Response(child.stdout).text(),
    await new Response(child.stderr).text(),
  ]
}

test('RUN-03 a second `bun run start` is refused before its build replaces the executable', async () => {
  const steps = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.start.split(' && ')
  expect(steps.indexOf('bun .ci/free.ts')).toBeLessThan(steps.indexOf('bun run build'))
  await using server = await serveExecutable()
  const none = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'none')
  expect(await check({ GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_PORT: '0' })).toEqual([
    75,
    '',
    expect.stringMatching(/^gatehouse: .+ is in use by another Gatehouse server .+\n$/),
  ])
  expect(await check({ GATEHOUSE_DATA_DIR: none, GATEHOUSE_PORT: String(server.port) })).toEqual([
    2,
    '',
    expect.stringMatching(/^gatehouse: GATEHOUSE_PORT: .+ is in use by another program\. .+\n$/),
  ])
  expect(await check({ GATEHOUSE_DATA_DIR: none, GATEHOUSE_PORT: '0' })).toEqual([0, '', ''])
  expect(existsSync(none)).toBe(false)
  rmSync(join(none, '..'), { recursive: true })
})
