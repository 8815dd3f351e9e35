import type { Measured } from './load.ts'
import type { Operation } from './operations.ts'
import type { Memory } from './server-process.ts'
import type { Start } from './start.ts'
import { against, number, table } from './table.ts'

/** One operation as one server does it, by number of connections. */
export type Costs = Map<number, Measured>

export interface OperationRow {
  operation: Operation
  ours: Costs | undefined
  peer: Costs | undefined
}

const COLUMNS = ['@1', '@8', '@64', 'op/s', 'p50', 'p99']

const cells = (costs: Costs | undefined): string[] => {
  const at8 = costs?.get(8)
  return [
    ...[1, 8, 64].map(connections => number(costs?.get(connections)?.cpu_per_op)),
    number(at8?.ops_per_second),
    number(at8?.p50, 2),
    number(at8?.p99, 2),
  ]
}

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
  console.log(`\n${table(head, body)}`)
  console.log(
    `@1, @8, @64: connections. op/s, p50 and p99 (ms) at 8 connections.${peer ? ` peer: ${peer}.` : ''}`,
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
  console.log(`\n${table(head, body)}`)
  console.log('From the start of the process to the first answer of discovery, median of the starts.')
}
