import type { Measured } from './load.ts'
import type { Operation } from './operations.ts'
import type { Memory } from './server-process.ts'
import type { Start } from './start.ts'
import { against, number, print, table } from './table.ts'

/** Results of one operation on one server, by number of connections. */
export type Costs = Map<number, Measured>

export interface OperationRow {
  operation: Operation
  ours?: Costs
  peer?: Costs
  /** Results on PostgreSQL: `one` copy, and `two` copies behind a balancer. */
  one?: Costs
  two?: Costs
}

const COLUMNS = ['@1', '@8', '@64', 'op/s', 'p50', 'p99']

const ALL = [1, 8, 64]

const pace = (measured: Measured | undefined): string[] => [
  number(measured?.ops_per_second),
  number(measured?.p50, 2),
  number(measured?.p99, 2),
]

const cells = (costs: Costs | undefined): string[] => [
  ...ALL.map(connections => number(costs?.get(connections)?.cpu_per_op)),
  ...pace(costs?.get(8)),
]

export const printOperations = (rows: OperationRow[], peer: string | undefined): void => {
  const head = ['CPU µs per operation', ...COLUMNS, 'limit @8']
  if (peer) head.push(...COLUMNS.map(column => `peer ${column}`), 'peer/ours @8')
  const body = rows.map(({ operation, ours, peer: theirs }) => {
    const cost = ours?.get(8)?.cpu_per_op
    const line = [operation.name, ...cells(ours), against(cost, operation.limit)]
    const other = theirs?.get(8)?.cpu_per_op
    if (other !== undefined) line.push(...cells(theirs), cost ? number(other / cost, 1) : '')
    return line
  })
  print(`\n${table(head, body)}`)
  print(`@1, @8, @64: connections. op/s, p50 and p99 (ms) at 8 connections.${peer ? ` peer: ${peer}.` : ''}`)
  const refresh = rows.find(({ operation }) => operation.name === 'refresh')?.ours?.get(8)
  if (!refresh) return
  const spread = refresh.p99 / refresh.p50
  print(`Refresh: p99 is ${number(spread, 1)} times p50 (limit ${against(spread, 5)}).`)
}

export const printPostgres = (rows: OperationRow[], version: string): void => {
  const head = ['on PostgreSQL, CPU µs', 'SQLite @8', '@1', '@8', '@64']
  head.push(...ALL.map(connections => `database @${connections}`), 'op/s', 'p50', 'p99', 'again')
  const body = rows.map(({ operation, ours, one }) => [
    operation.name,
    number(ours?.get(8)?.cpu_per_op),
    ...ALL.map(connections => number(one?.get(connections)?.cpu_per_op)),
    ...ALL.map(connections => number(one?.get(connections)?.database_per_op)),
    ...pace(one?.get(8)),
    percent(one?.get(8)?.retried),
  ])
  print(`\n${table(head, body)}`)
  print(
    `PostgreSQL ${version}, with fsync and synchronous_commit. @: Gatehouse's process; database @: PostgreSQL's processes;\n` +
      'op/s, p50 and p99 (ms) at 8 connections; again: retries in percent of the commits.',
  )
}

const percent = (share: number | undefined): string =>
  share === undefined || Number.isNaN(share) ? '' : `${number(share * 100, 1)} %`

export const printCopies = (rows: OperationRow[]): void => {
  const head = ['two copies, 8 connections', 'copies µs', 'database µs', 'op/s', 'p50', 'p99', 'again']
  head.push('one copy op/s', 'p50', 'p99', 'two/one')
  const body = rows.map(({ operation, one, two }) => {
    const [alone, both] = [one?.get(8), two?.get(8)]
    const gain = (both?.ops_per_second ?? Number.NaN) / (alone?.ops_per_second ?? Number.NaN)
    const costs = [number(both?.cpu_per_op), number(both?.database_per_op)]
    return [operation.name, ...costs, ...pace(both), percent(both?.retried), ...pace(alone), number(gain, 2)]
  })
  print(`\n${table(head, body)}`)
  print(
    'A balancer gives each request to the next copy. The balancer, both copies, PostgreSQL and the load share the cores of this machine.',
  )
}

export interface StartRow {
  name: string
  start: Start
  loaded: Memory | undefined
}

const LIMITS = { first: 250, again: 100, memory: 75 }

export const printStarts = (rows: StartRow[]): void => {
  const head = ['', 'first start ms', 'with keys ms', 'idle RSS MiB', 'PSS', 'after load RSS', 'PSS']
  const body = rows.map(({ name, start: { first, again, idle }, loaded }) => [
    name,
    ...[first, again, idle.rss, idle.pss, loaded?.rss, loaded?.pss].map(value => number(value)),
  ])
  const ours = rows[0]?.start
  body.push([
    'limit',
    against(ours?.first, LIMITS.first),
    against(ours?.again, LIMITS.again),
    against(ours?.idle.rss, LIMITS.memory),
  ])
  print(`\n${table(head, body)}`)
  print('From the start of the process to the first answer of discovery, median of the starts.')
}
