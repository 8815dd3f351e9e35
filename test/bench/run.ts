import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { type Connection, connect } from './connection.ts'
import { EXECUTABLE, gatehouseTarget } from './gatehouse.ts'
import { type Duration, type Measured, measure } from './load.ts'
import { type Operation, operations } from './operations.ts'
import { findNode, peerTarget } from './peer.ts'
import { type Memory, memoryOf, removeDirectory } from './server-process.ts'
import { gatehouseStart, peerStart, type Start } from './start.ts'
import { against, number, table } from './table.ts'
import type { Target } from './target.ts'

const USAGE = `bun run bench [--quick] [--only <part of an operation's name>] [--no-peer]

Starts dist/gatehouse (bun run build makes it) and oidc-provider, each on a fresh SQLite file, and prints what one
operation costs them in CPU time. Wall clock is noise on a shared machine: the CPU columns are the figures.`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    'no-peer': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  console.log(USAGE)
  process.exit(0)
}
if (!existsSync(EXECUTABLE)) {
  console.error('dist/gatehouse is missing: `bun run build` makes it.')
  process.exit(1)
}

const CONNECTIONS = [1, 8, 64]
const duration: Duration = options.quick
  ? { warm_up: 500, slice: 300, slices: 3 }
  : { warm_up: 1_500, slice: 1_000, slices: 5 }
const START_ROUNDS = options.quick ? 3 : 9
const LIMITS = { first: 250, again: 100, memory: 75 }

const measureOperation = async (
  target: Target,
  operation: Operation,
  connections: number,
): Promise<Measured | undefined> => {
  const opened = await Promise.all(Array.from({ length: connections }, () => connect(target.process.port)))
  try {
    const steps = await Promise.all(
      opened.map((connection: Connection) => operation.prepare(target, connection)),
    )
    const ready = steps.filter(step => step !== undefined)
    return ready.length > 0 ? await measure(target.process.pid, ready, duration) : undefined
  } finally {
    for (const connection of opened) connection.close()
  }
}

type Row = Map<Target, (Measured | undefined)[]>

const measureRow = async (targets: Target[], operation: Operation): Promise<Row> => {
  const row: Row = new Map(targets.map(target => [target, []]))
  // Side by side, so that a change of the machine's pace meets both.
  for (const connections of CONNECTIONS)
    for (const target of targets)
      row.get(target)?.push(await measureOperation(target, operation, connections))
  return row
}

const printOperations = (rows: [Operation, Row][], [ours, peer]: Target[]): void => {
  const cells = (measured: (Measured | undefined)[] = []) => [
    ...measured.map(each => number(each?.cpu_per_op)),
    number(measured[1]?.ops_per_second),
    number(measured[1]?.p50, 2),
    number(measured[1]?.p99, 2),
  ]
  const columns = ['@1', '@8', '@64', 'op/s', 'p50', 'p99']
  const head = ['CPU µs per operation', ...columns, 'limit @8']
  if (peer) head.push(...columns.map(column => `peer ${column}`), 'ratio @8')
  const body = rows.map(([operation, row]) => {
    const mine = ours && row.get(ours)
    const cost = mine?.[1]?.cpu_per_op
    const line = [operation.name, ...cells(mine), against(cost, operation.limit)]
    const theirs = peer && row.get(peer)
    if (theirs?.[1]) line.push(...cells(theirs), `${number(theirs[1].cpu_per_op / (cost ?? Number.NaN), 1)}x`)
    return line
  })
  console.log(`\n${table(head, body)}`)
  console.log('op/s, p50 and p99 (ms) at 8 connections.')
}

const printStart = (starts: [string, Start, Memory | undefined][]): void => {
  const head = ['', 'first start ms', 'with keys ms', 'idle RSS MiB', 'idle PSS MiB', 'after load RSS', 'PSS']
  const body = starts.map(([name, { first, again, idle }, loaded]) => [
    name,
    ...[first, again, idle.rss, idle.pss, loaded?.rss, loaded?.pss].map(value => number(value)),
  ])
  const [, mine] = starts[0] ?? []
  body.push([
    'limit',
    against(mine?.first, LIMITS.first),
    against(mine?.again, LIMITS.again),
    against(mine?.idle.rss, LIMITS.memory),
  ])
  console.log(`\n${table(head, body)}`)
}

const node = options['no-peer'] ? undefined : await findNode()
if (!node && !options['no-peer'])
  console.log('The peer is left out: neither npm nor this machine has a node with node:sqlite.')
console.log(`${cpus()[0]?.model.trim()}, ${cpus().length} cores; each commit synced, audit events and log on`)

const chosen = operations.filter(({ name }) => name.includes(options.only ?? ''))
const targets: Target[] = []
try {
  const starts: [string, Start][] = []
  if (!options.only) {
    starts.push(['gatehouse', await gatehouseStart(START_ROUNDS)])
    if (node) starts.push(['oidc-provider', await peerStart(START_ROUNDS, node)])
  }
  targets.push(await gatehouseTarget())
  if (node) targets.push(await peerTarget(node))
  const rows: [Operation, Row][] = []
  for (const operation of chosen) {
    process.stderr.write(`${operation.name} …\n`)
    rows.push([operation, await measureRow(targets, operation)])
  }
  printOperations(rows, targets)
  if (starts.length > 0)
    printStart(
      starts.map(([name, start], i) => {
        const target = targets[i]
        return [name, start, target && memoryOf(target.process.pid)]
      }),
    )
} finally {
  for (const { process: server } of targets) {
    await server.stop()
    await removeDirectory(server.directory)
  }
}
