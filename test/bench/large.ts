import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { connect, get } from './connection.ts'
import { fill } from './fill.ts'
import { prepareGatehouse, startGatehouse } from './gatehouse.ts'
import { paths } from './lists.ts'
import { type Duration, median } from './load.ts'
import { measureOperation, type Operation, operations } from './operations.ts'
import { freshDirectory, memoryOf } from './server-process.ts'
import { number, print, table } from './table.ts'
import { stopTarget, type Target } from './target.ts'

const FEW = { users: 1_000, events: 10_000 }
/** Largest allowed cost in the large database, divided by the cost in the small database. */
const LIMIT = 2
/** Maximum milliseconds of a start. */
const START_LIMIT = 2_000
const STARTS = 3

/** Endpoints that read rows of the large tables. */
const endpoints = ['refresh', 'code flow, ES256', 'introspection', 'userinfo', 'login with a password']

interface Instance {
  target: Target
  /** ms */
  started_in: number
}

const open = async (users: number, events: number): Promise<Instance> => {
  const directory = await freshDirectory()
  const file = join(directory, 'gatehouse.db')
  await (await startGatehouse(directory)).stop()
  process.stderr.write(`filling ${users} users, ${events} events …\n`)
  fill(file, users, events)
  // Syncs the filled database, because the server's first commit would wait for the pending writes.
  const descriptor = openSync(file, 'r+')
  fsyncSync(descriptor)
  closeSync(descriptor)
  const times: number[] = []
  for (let i = 0; i < STARTS; i++) {
    const server = await startGatehouse(directory)
    times.push(server.started_in)
    await server.stop()
  }
  return { target: await prepareGatehouse(await startGatehouse(directory)), started_in: median(times) }
}

type Path = (target: Target) => Promise<string>

const askAdmin = ({ admin_token }: Target, path: string): string =>
  get(`/api/v1/admin${path}`, { authorization: `Bearer ${admin_token}` })

const page = (name: string, path: Path = async () => name): Operation => ({
  name,
  prepare: async (target, connection) => {
    const request = askAdmin(target, await path(target))
    return async () => {
      const { status, body } = await connection.send(request)
      if (status !== 200) throw new Error(`${name}: ${status} ${body}`)
    }
  },
})

/** Returns the path of the first row of a list. */
const first =
  (list: string, before: string): Path =>
  async target => {
    const connection = await connect(target.process.port)
    const { data } = JSON.parse((await connection.send(askAdmin(target, list))).body)
    connection.close()
    return before + data[0].id
  }

const rows = [
  page('/users/{id}', first('/users?sort=username&limit=1', '/users/')),
  page('/events/{id}', first('/events?limit=1', '/events/')),
  page('/sessions'),
  page('/sessions?user_id={id}', first('/users?sort=username&limit=1', '/sessions?user_id=')),
]

/**
 * Checks that no cost grows with the number of rows. Both servers run at once, so that a change in the
 * machine's speed affects both.
 */
export const runLarge = async (users: number, events: number, duration: Duration): Promise<void> => {
  const instances: Instance[] = []
  try {
    instances.push(await open(FEW.users, FEW.events), await open(users, events))
    const all = [
      ...operations.filter(({ name }) => endpoints.includes(name)),
      ...rows,
      ...paths.map(path => page(path)),
    ]
    const lines: string[][] = []
    for (const [i, operation] of all.entries()) {
      process.stderr.write(`${i + 1} of ${all.length}: ${operation.name} …\n`)
      const costs: number[] = []
      for (const { target } of instances)
        costs.push((await measureOperation(target, operation, 8, duration))?.cpu_per_op ?? Number.NaN)
      const ratio = (costs[1] ?? Number.NaN) / (costs[0] ?? Number.NaN)
      lines.push([
        operation.name,
        ...costs.map(cost => number(cost)),
        `${number(ratio, 1)}${ratio > LIMIT ? ' MISSED' : ' ok'}`,
      ])
    }
    const started = instances.map(({ started_in }) => started_in)
    lines.push([
      'start to first answer, ms',
      ...started.map(ms => number(ms)),
      (started[1] ?? 0) > START_LIMIT ? 'MISSED' : 'ok',
    ])
    const memory = instances.map(({ target }) => number(memoryOf(target.process.pid).rss))
    lines.push(['memory after all this, MiB', ...memory])
    const head = ['CPU µs at 8 connections', `${FEW.users} users`, `${users} users`, `ratio (limit ${LIMIT})`]
    print(`\n${table(head, lines)}`)
  } finally {
    for (const instance of instances) await stopTarget(instance.target)
  }
}
