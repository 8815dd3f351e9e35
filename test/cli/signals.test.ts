/** Tests signals to a server that is starting, and to a server whose database does not answer. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { STALL_TIMEOUT } from '#src/storage/postgres/connect.ts'
import { EXECUTABLE, serveExecutable } from '#test/support/executable.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { hasPostgres, type PostgresServer, startPostgres, temporaryPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const workersOf = async (pid: number): Promise<string[]> =>
  (await Bun.$`pgrep -f "worker" -P ${pid}`.nothrow().text()).split('\n').filter(Boolean)

/** Starts a server with two workers. Calls `use` while the workers wait for the database. */
const whileStarting = async (url: string, use: (server: Bun.Subprocess) => Promise<unknown>) => {
  const sql = new SQL(url)
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  // A worker reads this table when it starts, so no worker is ready before the lock is released.
  const server = await sql.begin(async tx => {
    await tx`LOCK TABLE migrations`
    const child = Bun.spawn([EXECUTABLE, 'serve'], {
      env: {
        PATH: process.env.PATH ?? '',
        GATEHOUSE_PORT: '0',
        GATEHOUSE_DATA_DIR: data_dir,
        GATEHOUSE_DATABASE_URL: url,
        GATEHOUSE_WORKERS: '2',
      },
      stdout: 'pipe',
      stderr: 'inherit',
    })
    try {
      await until(async () => (await workersOf(child.pid)).length === 1)
      await use(child)
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
    return child
  })
  await sql.close()
  return {
    server,
    lines: server.stdout,
    [Symbol.dispose]: () => {
      server.kill('SIGKILL')
      rmSync(data_dir, { recursive: true })
    },
  }
}

testOnPostgres(
  'RUN-51 SIGHUP while the workers start replaces them when all have started',
  async () => {
    const { url, drop } = await temporaryPostgres()
    {
      using starting = await whileStarting(url, async server => server.kill('SIGHUP'))
      let output = ''
      for await (const chunk of starting.lines.pipeThrough(new TextDecoderStream())) {
        output += chunk
        if (output.includes('all workers were replaced')) break
      }
      expect(output).toContain('"event":"ready"')
      expect(output).toContain('all workers were replaced')
    }
    await drop()
  },
  60_000,
)

testOnPostgres(
  'RUN-50 SIGTERM while the workers start ends them and the server',
  async () => {
    const { url, drop } = await temporaryPostgres()
    {
      using starting = await whileStarting(url, async server => {
        server.kill('SIGTERM')
        expect(await server.exited).toBe(0)
      })
      const output = await new Response(starting.lines).text()
      expect(output).toContain('"event":"stopped"')
      expect(output).not.toContain('"event":"ready"')
    }
    await drop()
  },
  60_000,
)

// The test stops processes of PostgreSQL, so it needs a server of its own on this machine.
let postgres: PostgresServer
beforeAll(() => {
  if (hasPostgres()) postgres = startPostgres()
}, 60_000)
afterAll(() => postgres?.remove())

testOnPostgres(
  'SIGTERM ends a server whose PostgreSQL does not answer',
  async () => {
    const url = `${postgres.url}/postgres`
    await using server = await serveExecutable({ GATEHOUSE_DATABASE_URL: url })
    const sql = new SQL(url)
    await server.admin('GET', '/roles')
    const backends = await sql`SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'gatehouse'`
    expect(backends.length).toBeGreaterThanOrEqual(2)
    for (const { pid } of backends) process.kill(Number(pid), 'SIGSTOP')
    try {
      const write = server.admin('POST', '/roles', { name: 'late', description: '', permissions: [] })
      void write.catch(() => {})
      const asked = performance.now()
      server.signal('SIGTERM')
      expect(await server.exited).toBe(0)
      expect(performance.now() - asked).toBeLessThan(STALL_TIMEOUT)
      expect(server.output()).toContain('"event":"stopped"')
    } finally {
      for (const { pid } of backends) process.kill(Number(pid), 'SIGCONT')
    }
    await sql.close()
  },
  60_000,
)
