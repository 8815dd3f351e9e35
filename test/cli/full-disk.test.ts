/**
 * Tests full disks and servers that do not answer. Each error message is one line that names the folder, file
 * or server, and the exit code is the one in the guide.
 */
import { describe, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { withDetails } from '#src/cli/error-details.ts'
import { unavailable } from '#src/storage/errors.ts'
import { addRole, EXECUTABLE, gatehouse, serveExecutable, stop } from '#test/support/executable.ts'
import { freePort } from '#test/support/free-port.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'
import { until } from '#test/support/until.ts'

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
 * Creates an instance by starting a server and stopping it. The stop removes SQLite's log. On the full disk,
 * a command could otherwise write into the space of the log.
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
  // Each command has its own disk. On a shared disk, a refused command could leave files with free space,
  // which the next command could use.
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

describe('a server whose log is on a full disk', () => {
  /** Starts a server that writes its log to this file. */
  const serveInto = async (log: string) => {
    const port = freePort()
    const stdout = openSync(log, 'a')
    const child = Bun.spawn([EXECUTABLE, 'serve'], {
      // Kubernetes sets `GATEHOUSE_SERVICE_HOST` for a service with the name `gatehouse`. The server warns
      // about this variable in the first line of the log.
      env: {
        GATEHOUSE_DATA_DIR: mkdtempSync(join(folder, 'data-')),
        GATEHOUSE_PORT: String(port),
        GATEHOUSE_SERVICE_HOST: '10.0.0.1',
      },
      stdout,
      stderr: 'ignore',
    })
    closeSync(stdout)
    const answers = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ status }) => status === 200,
        () => false,
      )
    await until(() => answers('/healthz'))
    return { child, answers }
  }

  test('answers, and ends at SIGTERM', async () => {
    const { child, answers } = await serveInto('/dev/full')
    for (let i = 0; i < 3; i++) expect(await answers('/.well-known/openid-configuration')).toBe(true)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
  })

  test('continues the log in the middle of a line when there is space again', async () => {
    await withDisk('64k', async dir => {
      const [log, ballast] = [join(dir, 'log'), join(dir, 'ballast')]
      writeFileSync(log, '')
      expect(() => writeFileSync(ballast, Buffer.alloc(1 << 20))).toThrow('ENOSPC')
      const { child, answers } = await serveInto(log)
      expect(await answers('/.well-known/openid-configuration')).toBe(true)
      rmSync(ballast)
      await until(() => readFileSync(log, 'utf8').includes('"path":"/.well-known/openid-configuration"'))
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
      const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
      // Lines without an event are left out, because a job that still runs at the end may log that the store
      // is closed.
      const events = lines.map(text => JSON.parse(text).event).filter(event => event !== undefined)
      // The line `ready` is printed outside the log. If there is space again before it, it comes first.
      expect(events).toContain('config')
      expect(events.at(-1)).toBe('stopped')
    })
  })
})

test('SIGTERM ends a server whose data are on a full disk', async () => {
  await withDisk('2m', async dir => {
    await instanceOn(dir)
    await using server = await serveExecutable({}, dir)
    expect(await addRole(server, 'stored')).toMatchObject({ status: 201 })
    expect(() => {
      for (;;) writeFileSync(join(dir, 'ballast'), Buffer.alloc(512), { flag: 'a' })
    }).toThrow('ENOSPC')
    expect(await addRole(server, 'refused')).toMatchObject({ status: 503 })
    expect(await stop(server)).toBe(0)
    expect(server.output()).toContain('"event":"stopped"')
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
