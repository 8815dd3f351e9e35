/**
 * Tests full disks and servers that do not answer. Each error message is one line that names the folder, file
 * or server, and the exit code is the one in the guide.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { withDetails } from '#src/cli/error-details.ts'
import { unavailable } from '#src/storage/errors.ts'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const withDisk = async (size: string, use: (dir: string) => Promise<void>): Promise<void> => {
  const dir = mkdtempSync(join(folder, 'disk-'))
  const unmount = await mountTmpfs(dir, size)
  if (!unmount) return console.log('left out: may not mount a small disk')
  try {
    await use(dir)
  } finally {
    await unmount()
  }
}
const line = (start: string) => expect.stringMatching(new RegExp(`^gatehouse: ${start}[/:][^\n]+\n$`))
/**
 * Creates an instance by starting a server and stopping it cleanly. After a crash, SQLite's log would remain,
 * and its space could be used again on the full disk.
 */
const instanceOn = async (dir: string): Promise<void> => {
  expect(await stop(await serveExecutable({}, dir))).toBe(0)
}
const env = (data_dir: string) => ({
  GATEHOUSE_DATA_DIR: data_dir,
  GATEHOUSE_PORT: '0',
  GATEHOUSE_LOG_LEVEL: 'silent',
})

test('a start on a full disk says where and exits with 78, wherever space runs out', async () => {
  for (const size of ['4k', '16k', '256k', '300k', '320k'])
    await withDisk(size, async dir => {
      const { code, stderr, stdout } = await gatehouse(['serve'], env(dir))
      expect({ size, code, stderr, stdout }).toEqual({ size, code: 78, stderr: line(dir), stdout: '' })
    })
}, 30_000)

test('with a full disk every command says so, and works again once there is space', async () => {
  // Each command has its own disk, because a command could use the space in files that a refused command
  // leaves.
  const elsewhere = join(folder, 'elsewhere.db')
  const register = ['client', 'create', 'app', '--kind', 'service']
  const rotate = ['keys', 'rotate']
  for (const args of [['serve'], rotate, ['user', 'link'], register, ['check'], ['backup', elsewhere]])
    await withDisk('2m', async dir => {
      await instanceOn(dir)
      const ballast = join(dir, 'ballast')
      expect(() => {
        for (;;) writeFileSync(ballast, Buffer.alloc(512), { flag: 'a' })
      }).toThrow('ENOSPC')
      const refused = await gatehouse(args, env(dir))
      expect([args, refused]).toEqual([args, { code: 78, stderr: line(dir), stdout: '' }])
      expect([args, refused.stderr]).toEqual([args, expect.stringMatching(/full|no space left/i)])
      rmSync(ballast)
      expect((await gatehouse(['keys', 'rotate'], env(dir))).code).toBe(0)
    })
}, 30_000)

test('a disk that became read-only is reported as read-only, not as damage', async () => {
  await withDisk('2m', async dir => {
    await instanceOn(dir)
    await Bun.$`mount -o remount,ro ${dir}`
    for (const args of [['serve'], ['check'], ['keys', 'list'], ['backup', join(folder, 'elsewhere.db')]])
      expect([args, await gatehouse(args, env(dir))]).toEqual([
        args,
        { code: 78, stderr: line(dir), stdout: '' },
      ])
  })
  const source = mkdtempSync(join(folder, 'data-'))
  await stop(await serveExecutable({}, source))
  await withDisk('2m', async dir => {
    await Bun.$`mount -o remount,ro ${dir}`
    expect(await gatehouse(['backup', join(dir, 'backup.db')], env(source))).toEqual({
      code: 1,
      stderr: line(`${dir}/backup.db cannot be written`),
      stdout: '',
    })
  })
}, 30_000)

testOnPostgres(
  'a backup of PostgreSQL onto a full disk names the disk and not the server',
  async () => {
    const { url, drop } = await temporaryPostgres()
    await withDisk('64k', async dir => {
      const { code, stderr } = await gatehouse(['backup', join(dir, 'backup.db')], {
        GATEHOUSE_DATABASE_URL: url,
      })
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${dir}/backup.db cannot be written: `)])
      expect(stderr).not.toContain('PostgreSQL')
      expect(readdirSync(dir)).toEqual([])
    })
    await drop()
  },
  30_000,
)

testOnPostgres(
  'the message names a server that does not answer in time, or whose tables are locked',
  async () => {
    const { url, drop } = await temporaryPostgres()
    const sql = new SQL({ url, max: 1 })
    const file = join(folder, 'config.json')
    writeFileSync(file, JSON.stringify({ database_url: url }))
    await sql.unsafe('SET statement_timeout = 1')
    const failure = await sql.unsafe('SELECT pg_sleep(60)').catch((error: unknown) => error)
    expect(await withDetails(unavailable(failure), { config: file })).toMatchObject({
      exit_code: 75,
      message: `PostgreSQL at ${new URL(url).host}, database ${new URL(url).pathname.slice(1)}: no answer in time; a restore or copy may be running.`,
    })
    const other = new Error('anything else')
    expect(await withDetails(other, { config: file })).toBe(other)
    await sql.close()
    await drop()
  },
)
