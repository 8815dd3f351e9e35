import { join } from 'node:path'
import { type Connection, connect, get } from './connection.ts'
import { fill } from './fill.ts'
import { prepareGatehouse, startGatehouse } from './gatehouse.ts'
import { paths } from './lists.ts'
import { type Duration, measure } from './load.ts'
import { type Operation, operations } from './operations.ts'
import { freshDirectory, memoryOf, removeDirectory, type ServerProcess } from './server-process.ts'
import { number, table } from './table.ts'
import type { Target } from './target.ts'

const FEW = { users: 1_000, events: 10_000 }
/** What may cost so many times as much in the large database. */
const LIMIT = 2
/** ms: checklist R-15. */
const START_LIMIT = 2_000

/** Those of the endpoints whose rows lie among the many. */
const endpoints = ['refresh', 'code flow, ES256', 'introspection', 'userinfo', 'login with a password']

const page = (path: string): Operation => ({
  name: path,
  prepare: async ({ admin_token }, connection) => {
    const request = get(`/api/v1/admin${path}`, { authorization: `Bearer ${admin_token}` })
    return async () => {
      const { status, body } = await connection.send(request)
      if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
    }
  },
})

/** Addresses of rows in the middle of what lists show. */
const rowPaths = async ({ admin_token }: Target, connection: Connection): Promise<string[]> => {
  const first = async (path: string): Promise<string> => {
    const request = get(`/api/v1/admin${path}`, { authorization: `Bearer ${admin_token}` })
    const { data } = JSON.parse((await connection.send(request)).body)
    return data[0].id
  }
  const [user, event] = [await first('/users?sort=username&limit=1'), await first('/events?limit=1')]
  return [`/users/${user}`, `/events/${event}`, `/sessions?user_id=${user}`]
}

interface Size {
  started_in: number
  rss: number
  /** CPU µs by name. */
  costs: Map<string, number>
}

const measureSize = async (users: number, events: number, duration: Duration): Promise<Size> => {
  const directory = await freshDirectory()
  let server: ServerProcess | undefined
  try {
    await (await startGatehouse(directory)).stop()
    process.stderr.write(`${users} users, ${events} events: filling …\n`)
    fill(join(directory, 'gatehouse.db'), users, events)
    server = await startGatehouse(directory)
    const target = await prepareGatehouse(server)
    const connection = await connect(server.port)
    const own = await rowPaths(target, connection)
    const all = [
      ...operations.filter(({ name }) => endpoints.includes(name)),
      ...['/sessions', ...own, ...paths].map(page),
    ]
    const costs = new Map<string, number>()
    for (const [i, operation] of all.entries()) {
      process.stderr.write(`\r${users} users: ${i + 1} of ${all.length} `)
      const step = await operation.prepare(target, connection)
      const name = operation.name.replace(/_[0-9a-f-]{36}/, '_…')
      if (step) costs.set(name, (await measure(server.pid, [step], duration)).cpu_per_op)
    }
    process.stderr.write('\n')
    return { started_in: server.started_in, rss: memoryOf(server.pid).rss, costs }
  } finally {
    await server?.stop()
    await removeDirectory(directory)
  }
}

/** What grows with the number of rows: nothing should. */
export const runLarge = async (users: number, events: number, duration: Duration): Promise<void> => {
  const short = { ...duration, slices: Math.ceil(duration.slices / 2) }
  const few = await measureSize(FEW.users, FEW.events, short)
  const many = await measureSize(users, events, short)
  const rows = [...few.costs].map(([name, cost]) => {
    const large = many.costs.get(name) ?? Number.NaN
    const ratio = large / cost
    return [name, number(cost), number(large), `${number(ratio, 1)}${ratio > LIMIT ? ' MISSED' : ' ok'}`]
  })
  rows.push([
    'start to first answer, ms',
    number(few.started_in),
    number(many.started_in),
    many.started_in > START_LIMIT ? 'MISSED' : 'ok',
  ])
  rows.push(['memory after all this, MiB', number(few.rss), number(many.rss), ''])
  const head = ['CPU µs at 1 connection', `${FEW.users} users`, `${users} users`, `ratio (limit ${LIMIT})`]
  console.log(`\n${table(head, rows)}`)
}
