/** Tests several processes of the executable behind one port, on PostgreSQL. */
import { expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { startWorker } from '#src/cli/worker-process.ts'
import { SECOND } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import { EXECUTABLE, gatehouse, type Running, serveExecutable, stop } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const workersOf = async ({ pid }: Running, command = 'worker'): Promise<number[]> =>
  (await Bun.$`pgrep -f ${command} -P ${pid}`.nothrow().text()).split('\n').filter(Boolean).map(Number)

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const linesOf = (server: Running, event: string): string[] =>
  server
    .output()
    .split('\n')
    .filter(line => line.includes(`"event":"${event}"`))

/**
 * Sends requests on separate connections until it is stopped, and returns the statuses. Repeats a failed
 * request once, as browsers and proxies do: the kernel can reset a connection before the server has read the
 * request.
 */
const askOften = (url: string) => {
  const statuses = new Set<number | string>()
  let isDone = false
  const ask = async () => (await fetch(`${url}/.well-known/jwks.json`, { keepalive: false })).status
  const one = async (): Promise<void> => {
    while (!isDone) statuses.add(await ask().catch(ask).catch(String))
  }
  const all = Promise.all([one(), one(), one(), one()])
  return async () => {
    isDone = true
    await all
    return [...statuses]
  }
}

testOnPostgres(
  'RUN-50 workers share the port, and a killed worker is started again',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const server = await serveExecutable({ GATEHOUSE_DATABASE_URL: url, GATEHOUSE_WORKERS: '2' })
    const workers = await workersOf(server)
    expect(workers).toHaveLength(2)
    expect(linesOf(server, 'ready')).toHaveLength(1)
    await until(() => linesOf(server, 'set_up').length > 0)
    expect(linesOf(server, 'set_up')).toHaveLength(1)
    // Old kernels, and units with ProcSubset=pid, have no such file.
    const moves = '/proc/sys/net/ipv4/tcp_migrate_req'
    const isOff = existsSync(moves) && readFileSync(moves, 'utf8').trim() !== '1'
    const [beforeReady = ''] = server.output().split('"event":"ready"')
    expect(beforeReady.includes('set sysctl net.ipv4.tcp_migrate_req to 1')).toBe(isOff)
    const scrape = async () => (await fetch(`${server.url}/metrics`, { keepalive: false })).text()
    const scrapes = async (count: number): Promise<string[]> => {
      const began = performance.now()
      const texts = await Promise.all(Array.from({ length: count }, scrape))
      // A worker whose metrics do not come within a second is left out: the machine was busy.
      return performance.now() - began < SECOND ? texts : scrapes(count)
    }
    const [metrics] = await scrapes(1)
    expect(metrics?.match(/^# TYPE gatehouse_commits_total/gm)).toHaveLength(1)
    for (const text of [metrics, ...(await scrapes(16))])
      for (const worker of [1, 2]) expect(text).toContain(`gatehouse_uptime_seconds{worker="${worker}"} `)

    const [first = 0] = await workersOf(server, 'worker --first')
    process.kill(first, 'SIGKILL')
    await until(async () => {
      const now = await workersOf(server)
      return now.length === 2 && !now.includes(first)
    })
    await until(() => linesOf(server, 'worker').join().includes('"worker":1,"code":137'))

    const last = await workersOf(server)
    expect(await stop(server)).toBe(0)
    expect(last.filter(isAlive)).toEqual([])
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-51 SIGHUP replaces the workers without a lost request, and keeps them when new ones cannot start',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'settings.yaml')
    writeFileSync(file, 'workers: 2\n')
    const server = await serveExecutable({
      GATEHOUSE_DATABASE_URL: url,
      GATEHOUSE_CONFIG: file,
    })
    const before = await workersOf(server)
    const statuses = askOften(server.url)
    // The server keeps the number of workers of its start.
    writeFileSync(file, 'workers: 1\nsmtp_url: smtp://127.0.0.1:1\nmail_from: id@example.com\n')
    server.signal('SIGHUP')
    await until(() => server.output().includes('all workers were replaced'))
    // Commands read here which settings the workers have.
    const { settings } = JSON.parse(readFileSync(join(server.data_dir, 'server.json'), 'utf8'))
    expect(settings).toEqual(['database_url', 'smtp_url', 'mail_from'])
    expect(await statuses()).toEqual([200])
    expect(before.filter(isAlive)).toEqual([])

    const replaced = await workersOf(server)
    expect(replaced).toHaveLength(2)
    writeFileSync(file, 'no_such_setting: 1\n')
    server.signal('SIGHUP')
    await until(() => server.output().includes('the old ones stay'))
    expect(await workersOf(server)).toEqual(replaced)
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)

    server.signal('SIGKILL')
    await until(() => !replaced.some(isAlive))
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-51 an old worker that is killed and started again during its replacement does not stay',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const server = await serveExecutable({ GATEHOUSE_DATABASE_URL: url, GATEHOUSE_WORKERS: '2' })
    const before = await workersOf(server)
    const sql = new SQL(url)
    // A worker reads this table when it starts, so no worker is ready before the lock is released.
    await sql.begin(async tx => {
      await tx`LOCK TABLE migrations`
      server.signal('SIGHUP')
      await until(async () => (await workersOf(server)).length === 3)
      process.kill(before[0] ?? 0, 'SIGKILL')
      await until(async () => {
        const now = await workersOf(server)
        return now.length === 3 && !now.includes(before[0] ?? 0)
      })
    })
    await until(() => server.output().includes('all workers were replaced'))
    expect(await workersOf(server)).toHaveLength(2)
    expect(before.filter(isAlive)).toEqual([])
    const last = await workersOf(server)
    expect(await stop(server)).toBe(0)
    expect(last.filter(isAlive)).toEqual([])
    await sql.close()
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-51 a newer executable does not upgrade the schema under the workers that run',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const server = await serveExecutable({ GATEHOUSE_DATABASE_URL: url, GATEHOUSE_WORKERS: '2' })
    const before = await workersOf(server)
    const sql = new SQL(url)
    // The executable takes the database for a database of an older version.
    await sql`DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations)`
    server.signal('SIGHUP')
    await until(() => server.output().includes('the old ones stay'))
    expect(server.output()).toContain('has an older version. Start the server to upgrade it.')
    expect(await workersOf(server)).toEqual(before)
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    server.signal('SIGKILL')
    await until(() => !before.some(isAlive))
    await sql.close()
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-51 after an upgrade a worker that ends is started again from the old executable, until SIGHUP',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const version = (await gatehouse(['--version'])).stdout.trim()
    const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse')
    copyFileSync(EXECUTABLE, path)
    const env = { GATEHOUSE_DATABASE_URL: url, GATEHOUSE_WORKERS: '2' }
    const server = await serveExecutable(env, undefined, path)
    const install = (write: (file: string) => void) => {
      write(`${path}.new`)
      renameSync(`${path}.new`, path)
    }
    install(file => writeFileSync(file, '#!/bin/sh\nexit 1\n', { mode: 0o755 }))
    const before = await workersOf(server)
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await until(async () => (await workersOf(server)).filter(pid => !before.includes(pid)).length === 2)
    const isReady = async () => (await fetch(`${server.url}/readyz`).catch(() => undefined))?.status === 200
    await until(isReady)
    const provider = { type: 'saml', alias: 'new', name: 'New', metadata_xml: '<a/>' }
    const { status, body } = await server.admin('POST', '/identity-providers', provider)
    expect([status, body.details[0].message]).toEqual([422, 'The metadata contains no identity provider.'])

    const started = join(server.data_dir, 'server.json')
    const state = JSON.parse(readFileSync(started, 'utf8'))
    writeFileSync(started, JSON.stringify({ ...state, version: 'an older version' }))
    server.signal('SIGHUP')
    await until(() => server.output().includes('the old ones stay'))
    expect(JSON.parse(readFileSync(started, 'utf8')).version).toBe('an older version')
    rmSync(path)
    server.signal('SIGHUP')
    await until(() => /no such file.*the old ones stay/.test(server.output()))
    install(file => copyFileSync(EXECUTABLE, file))
    server.signal('SIGHUP')
    await until(() => server.output().includes('all workers were replaced'))
    await until(() => JSON.parse(readFileSync(started, 'utf8')).version === version)
    expect(JSON.parse(readFileSync(started, 'utf8'))).toEqual({ ...state, version })
    expect(await stop(server)).toBe(0)
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-51 after SIGHUP, too, a worker that ends is started again from the executable of the others',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse')
    copyFileSync(EXECUTABLE, path)
    const env = { GATEHOUSE_DATABASE_URL: url, GATEHOUSE_WORKERS: '2' }
    const server = await serveExecutable(env, undefined, path)
    const install = (write: (file: string) => void) => {
      write(`${path}.new`)
      renameSync(`${path}.new`, path)
    }
    const filesOf = async () =>
      (await workersOf(server)).map(pid => statSync(`/proc/${pid}/exe`, { throwIfNoEntry: false })?.ino)
    /** Replaces the workers, and returns the inode of their executable. */
    const replace = async (count: number) => {
      const { ino } = statSync(path)
      server.signal('SIGHUP')
      await until(() => server.output().split('all workers were replaced').length === count + 1)
      expect(await filesOf()).toEqual([ino, ino])
      return ino
    }
    /** Counts the files that the server has open. Its pipes and sockets are left out: they close late. */
    const held = () => {
      const folder = `/proc/${server.pid}/fd`
      const files = readdirSync(folder).map(fd => statSync(join(folder, fd), { throwIfNoEntry: false }))
      return files.filter(file => file?.isFile()).length
    }
    install(file => copyFileSync(EXECUTABLE, file))
    const ino = await replace(1)
    const files = held()
    install(file => copyFileSync(EXECUTABLE, file))
    for (const pid of await workersOf(server)) {
      process.kill(pid, 'SIGKILL')
      await until(async () => !(await workersOf(server)).includes(pid) && (await filesOf()).length === 2)
      expect(await filesOf()).toEqual([ino, ino])
    }
    await until(async () => (await fetch(`${server.url}/readyz`).catch(() => undefined))?.status === 200)
    expect(await replace(2)).not.toBe(ino)
    expect(held()).toBe(files)
    expect(await stop(server)).toBe(0)
    await drop()
  },
  60_000,
)

test('a worker whose program cannot be run has ended with 1, and the log says why', async () => {
  const lines: string[] = []
  const worker = startWorker({
    log: openLogger('info', line => lines.push(line)),
    program: [join(tmpdir(), 'gatehouse-missing')],
    isFirst: true,
    upgrades: true,
    port: 0,
    workers: 2,
    file: undefined,
    allMetrics: async () => '',
  })
  expect(await worker.exited).toBe(1)
  expect(await worker.ready.catch(({ code }) => code)).toBe('ENOENT')
  expect(lines.map(line => JSON.parse(line))).toEqual([
    expect.objectContaining({
      event: 'worker',
      reason: expect.stringContaining('gatehouse-missing'),
      msg: 'the program of a worker cannot be run',
    }),
  ])
})

test('RUN-52 workers without PostgreSQL, and a port in use, stop the start', async () => {
  expect(await gatehouse(['serve'], { GATEHOUSE_WORKERS: '2' })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('workers: more than 1 needs database_url'),
  })
  using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const env = {
    GATEHOUSE_WORKERS: '2',
    GATEHOUSE_DATABASE_URL: 'postgres://u@127.0.0.1:1/x',
    GATEHOUSE_PORT: String(other.port),
  }
  expect(await gatehouse(['serve'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is in use by another program'),
  })
})
