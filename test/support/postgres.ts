import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { afterwards } from './afterwards.ts'
import { freePort } from './free-port.ts'

/**
 * Returns the folder of PostgreSQL's programs. Debian installs each version in its own folder. On other
 * systems the programs are on the path.
 */
const binaries = (): string => {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  if (versions[0]) return join(root, versions[0], 'bin')
  const found = Bun.which('initdb')
  if (!found) throw new Error('Tests on PostgreSQL need it installed (Debian: apt-get install postgresql).')
  return join(found, '..')
}

export const hasPostgres = (): boolean => {
  try {
    return Boolean(binaries())
  } catch {
    return false
  }
}

export interface PostgresServer {
  /** URL of a superuser without a database name. Append a name: `${url}/name`. */
  url: string
  port: number
  /** The server's data directory. */
  data: string
  /** Stops the server at once, even while clients are connected. */
  stop(): void
  start(): void
  /** Stops the server and removes its data. */
  remove(): void
}

/** Settings for fast tests: the server does not wait for the disk. */
const NOT_DURABLE = { fsync: 'off', full_page_writes: 'off', shared_buffers: '64MB', autovacuum: 'off' }

/**
 * Starts a PostgreSQL server without a password on a free port. `durable` keeps PostgreSQL's default
 * settings.
 */
export const startPostgres = ({ durable = false } = {}): PostgresServer => {
  const bin = binaries()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'))
  const data = join(folder, 'data')
  // The server may still be starting when this process is killed.
  afterwards(`sleep 1; kill -INT $(head -1 ${data}/postmaster.pid) 2>/dev/null; sleep 2; rm -rf ${folder}`)
  const isRoot = process.getuid?.() === 0
  const run = (name: string, args: string[], allowed = false): void => {
    const command = [join(bin, name), ...args]
    // PostgreSQL refuses to run as root. Debian's package creates the user `postgres`.
    const [program = '', ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command
    const { status, stderr, error } = spawnSync(program, rest, {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: folder,
    })
    if (status !== 0 && !allowed) throw new Error(`${name}: ${error ?? stderr}`)
  }
  if (isRoot) {
    const id = (flag: string) => Number(spawnSync('id', [flag, 'postgres']).stdout.toString())
    chownSync(folder, id('-u'), id('-g'))
  }
  run('initdb', ['-D', data, '-U', 'gatehouse', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'])
  const port = freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: 400,
    ...(!durable && NOT_DURABLE),
  }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const log = join(folder, 'log')
  const start = () => run('pg_ctl', ['-D', data, '-l', log, '-o', options.join(' '), '-w', 'start'])
  const stop = () => run('pg_ctl', ['-D', data, '-m', 'immediate', '-w', 'stop'], true)
  start()
  return {
    url: `postgres://gatehouse@127.0.0.1:${port}`,
    port,
    data,
    start,
    stop,
    remove: () => {
      stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Updates the planner's statistics, as autovacuum does from time to time. */
export const analyze = async (url: string): Promise<void> => {
  const sql = new SQL({ url, max: 1 })
  await sql.unsafe('ANALYZE')
  await sql.close()
}

let shared: Promise<{ url: string; admin: SQL; template: string }> | undefined
let databases = 0

/**
 * Returns the server of TEST_POSTGRES, or starts a server for this process. Two processes of a run never
 * share a server, because an open transaction of any database delays the moment at which events count as
 * settled (audit/stream-store.ts).
 */
const server = async () => {
  const url = process.env.TEST_POSTGRES ?? startPostgres().url
  const admin = new SQL({ url: `${url}/postgres`, database: 'postgres', max: 1 })
  const prefix = `test_${process.pid}`
  const template = `${prefix}_template`
  await admin.unsafe(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`)
  await admin.unsafe(`CREATE DATABASE ${template}`)
  const { openPostgres } = await import('#src/storage/postgres/store.ts')
  await (await openPostgres({ url: `${url}/${template}`, connections: 1 })).close()
  return { url, admin, template }
}

/** Returns the URL of a new database. The database has all tables, unless `empty` is true. */
export const temporaryPostgres = async (empty = false): Promise<{ url: string; drop(): Promise<void> }> => {
  shared ??= server()
  const { url, admin, template } = await shared
  const name = `test_${process.pid}_${++databases}`
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${empty ? 'template0' : template}`)
  return {
    url: `${url}/${name}`,
    drop: async () => {
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}
