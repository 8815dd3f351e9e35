/** Tests commands whose output is for other programs. They fail when they cannot write the whole output. */
import { afterAll, expect, test } from 'bun:test'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fill } from '#test/bench/fill.ts'
import { EXECUTABLE, gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const instance = async (): Promise<string> => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  await stop(await serveExecutable({}, data_dir))
  return data_dir
}

test('a large export is the same through a pipe as into a file', async () => {
  const data_dir = await instance()
  fill(join(data_dir, 'gatehouse.db'), 10_000, 10)
  const env = { GATEHOUSE_DATA_DIR: data_dir }
  const file = join(folder, 'export.yaml')
  expect(await gatehouse(['export', file], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  const piped = await gatehouse(['export'], env)
  expect(piped.code).toBe(0)
  expect(piped.stdout.length).toBeGreaterThan(1_000_000)
  expect(piped.stdout === readFileSync(file, 'utf8')).toBe(true)
}, 60_000)

test('a reader that ends early, such as head, is no failure of an export', async () => {
  const data_dir = await instance()
  const env = { GATEHOUSE_DATA_DIR: data_dir, PATH: process.env.PATH ?? '' }
  const [key = ''] = (await gatehouse(['keys', 'list'], env)).stdout.split(' ')
  for (const args of ['events export', 'export', `keys export ${key}`]) {
    // The shell runs `:` and closes the pipe before the command writes.
    const pipeline = `set -o pipefail; { until [ -e ${folder}/closed ]; do :; done; ${EXECUTABLE} ${args}; } | { exec <&-; touch ${folder}/closed; }`
    const { exitCode, stderr } = Bun.spawnSync(['bash', '-c', pipeline], { env })
    expect([args, exitCode, String(stderr)]).toEqual([args, 0, ''])
    rmSync(join(folder, 'closed'))
  }
}, 30_000)

test('an output that cannot be written is a failure, in one line', async () => {
  const env = { GATEHOUSE_DATA_DIR: await instance() }
  const [id = ''] = (await gatehouse(['keys', 'list'], env)).stdout.split(' ')
  const printing = [['export'], ['keys', 'export', id], ['keys', 'list'], ['user', 'list'], ['version']]
  for (const args of [
    ...printing,
    ['client', 'create', 'app', '--kind', 'service'],
    ['guide'],
    ['openapi'],
  ]) {
    const stdout = openSync('/dev/full', 'w')
    const child = Bun.spawn([join(import.meta.dir, '../../dist/gatehouse'), ...args], {
      env,
      stdout,
      stderr: 'pipe',
    })
    const said = await new Response(child.stderr).text()
    expect([args, await child.exited, said]).toEqual([args, 1, expect.stringContaining('ENOSPC')])
    closeSync(stdout)
  }
})

test('an export replaces an earlier one completely, readable only by its owner when it has secrets', async () => {
  const env = { GATEHOUSE_DATA_DIR: await instance() }
  const file = join(folder, 'earlier.yaml')
  writeFileSync(file, 'earlier', { mode: 0o644 })
  expect((await gatehouse(['export', file, '--secrets'], env)).code).toBe(0)
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  expect(readFileSync(file, 'utf8')).toStartWith('organizations:')
  const disk = mkdtempSync(join(folder, 'disk-'))
  const unmount = await mountTmpfs(disk, '8k')
  if (!unmount) return console.log('left out: may not mount a small disk')
  try {
    const small = join(disk, 'earlier.yaml')
    writeFileSync(small, 'earlier')
    expect(() => writeFileSync(join(disk, 'ballast'), Buffer.alloc(1 << 20))).toThrow('ENOSPC')
    const { code, stderr } = await gatehouse(['export', small], env)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${small}: cannot be written: ENOSPC`)])
    expect(readdirSync(disk).sort()).toEqual(['ballast', 'earlier.yaml'])
    expect(readFileSync(small, 'utf8')).toBe('earlier')
  } finally {
    await unmount()
  }
})
