import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SQL } from 'bun'
import { hasPostgres, startPostgres } from '#test/support/postgres.ts'
import { METRICS_TOKEN, paths, prepareGatehouse, startGatehouse } from './gatehouse.ts'
import { freePort, freshDirectory, type ServerProcess, start } from './server-process.ts'
import type { Target } from './target.ts'

const BALANCER = fileURLToPath(new URL('./balancer.ts', import.meta.url))
const COPIES = 2

export interface PostgresBench {
  /** Name and version, for the printed report. */
  version: string
  /** Starts one copy of this build or of another executable, on a new database. */
  one(executable?: string): Promise<Target>
  /** Starts two copies of this build on a new database, behind a balancer. */
  two(): Promise<Target>
  remove(): void
}

/**
 * Starts a PostgreSQL server that waits for the disk at each commit. Returns undefined if PostgreSQL is not
 * installed.
 */
export const startPostgresBench = async (): Promise<PostgresBench | undefined> => {
  if (!hasPostgres()) return undefined
  const server = startPostgres({ durable: true })
  process.on('exit', server.remove)
  const ask = async (text: string) => {
    const sql = new SQL({ url: `${server.url}/postgres`, database: 'postgres', max: 1 })
    const [row] = await sql.unsafe(text)
    await sql.close()
    return row
  }
  const { server_version } = await ask('SHOW server_version')
  let databases = 0
  const database = async () => {
    const name = `bench_${++databases}`
    await ask(`CREATE DATABASE ${name}`)
    return { GATEHOUSE_DATABASE_URL: `${server.url}/${name}` }
  }
  const prepare = async (entry: ServerProcess, copies: ServerProcess[]): Promise<Target> => ({
    ...(await prepareGatehouse(entry)),
    copies,
    database: () => processesBelow(server.data),
    commits: () => commitsOf(copies),
  })
  return {
    version: String(server_version).split(' ', 1)[0] ?? '',
    one: async executable => {
      const entry = await startGatehouse(await freshDirectory(), await database(), executable)
      return prepare(entry, [entry])
    },
    two: async () => {
      const port = await freePort()
      const env = {
        ...(await database()),
        GATEHOUSE_URL: `http://localhost:${port}`,
        GATEHOUSE_HOST: '127.0.0.1',
        GATEHOUSE_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      }
      const copies: ServerProcess[] = []
      for (let i = 0; i < COPIES; i++) copies.push(await startGatehouse(await freshDirectory(), env))
      const directory = await freshDirectory()
      const command = [process.execPath, BALANCER, ...[port, ...copies.map(copy => copy.port)].map(String)]
      const balancer = await start({ command, env: {}, port, directory, probe: paths.discovery })
      return prepare(balancer, copies)
    },
    remove: () => {
      server.remove()
      process.off('exit', server.remove)
    },
  }
}

/** Returns the ids of the server process, its worker processes and its processes for connections. */
const processesBelow = (data: string): number[] => {
  const pid = Number(readFileSync(`${data}/postmaster.pid`, 'latin1').split('\n', 1)[0])
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')
  return [pid, ...children.map(Number)]
}

const commitsOf = async (copies: ServerProcess[]): Promise<{ done: number; retried: number }> => {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const pages = copies.map(async ({ port }) =>
    (await fetch(`http://localhost:${port}/metrics`, { headers })).text(),
  )
  const text = (await Promise.all(pages)).join('\n')
  const total = (outcome: string) => {
    const line = new RegExp(`^gatehouse_commits_total{outcome="${outcome}"} (\\d+)`, 'gm')
    return [...text.matchAll(line)].reduce((sum, [, count]) => sum + Number(count), 0)
  }
  return { done: total('done'), retried: total('retried') }
}
