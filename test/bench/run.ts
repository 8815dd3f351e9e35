import { existsSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { compare, executableAt, TOLERANCE } from './against.ts'
import { BARE_OPERATIONS, bareTarget } from './bare.ts'
import { printDeliveries } from './deliveries.ts'
import { printDevelopment } from './dev.ts'
import { measureFlood } from './flood.ts'
import { FLOOR, measureFloor } from './floor.ts'
import { EXECUTABLE, gatehouseTarget } from './gatehouse.ts'
import { runLarge } from './large.ts'
import type { Duration } from './load.ts'
import { measureOperation, type Operation, operations } from './operations.ts'
import { findNode, PEER, peerTarget } from './peer.ts'
import { startPostgresBench } from './postgres.ts'
import {
  type OperationRow,
  printCopies,
  printOperations,
  printPostgres,
  printStarts,
  type StartRow,
} from './report.ts'
import { benchSdk } from './sdk.ts'
import { memoryOf } from './server-process.ts'
import { gatehouseStart, peerStart } from './start.ts'
import { runSteady } from './steady.ts'
import { measureRefusals } from './strangers.ts'
import { against, number, print, written } from './table.ts'
import { stopTarget, type Target } from './target.ts'

const USAGE = `bun run bench [--quick] [--only <part of an operation's name>] [--no-peer] [--no-postgres] [--write <file>]
bun run bench --against <checkout or executable> [--connections 8] [--postgres] [--quick] [--only <part of an operation's name>]
bun run bench --floor bare|required [--against <checkout or executable>] [--connections 8] [--quick]
  [--only <part of an operation's name>]
bun run bench --deliveries
bun run bench --large [--users 1000000] [--events 10000000]
bun run bench --steady [--users 50000] [--events 300000] [--quick]

Starts dist/gatehouse (bun run build makes it) and oidc-provider, each on a fresh SQLite file, and prints the CPU time
that the whole server process takes for one operation. Compare the CPU columns: wall clock time is noise on a shared
machine. The operations are also measured on a PostgreSQL server of their own (Debian: apt-get install postgresql), with
one copy of Gatehouse and with two copies behind a balancer. --against measures this build and another one alternately
in three rounds. It fails when an operation costs over 5 % more CPU time in this build (median of the three ratios).
--connections is 1, 8 or 64. With --postgres both builds run on PostgreSQL, and the CPU time of PostgreSQL is compared
too. --floor compares the bare stack (bare.ts), or the stack with the parts that each answer must have (required.ts),
with this build or that of --against. No new build can have a lower ratio than the stack. --deliveries measures
webhooks alone. --large compares a database that has the given numbers of users and events with one that has 1,000 and 10,000. --steady measures writes and the event loop beside a backup, an apply, a clean-up,
key rotations and a login storm; on a busy machine, a new process session (setsid) with a high priority helps, and a
TMPDIR in memory excludes the disk. --write keeps the results as Markdown.`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    against: { type: 'string' },
    connections: { type: 'string', default: '8' },
    postgres: { type: 'boolean', default: false },
    floor: { type: 'string' },
    'no-peer': { type: 'boolean', default: false },
    'no-postgres': { type: 'boolean', default: false },
    deliveries: { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    steady: { type: 'boolean', default: false },
    users: { type: 'string' },
    events: { type: 'string' },
    write: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  console.log(USAGE)
  process.exit(0)
}
const other = options.against === undefined ? undefined : executableAt(options.against)
for (const executable of [EXECUTABLE, other ?? EXECUTABLE])
  if (!existsSync(executable)) {
    console.error(`${executable} is missing: \`bun run build\` makes it.`)
    process.exit(1)
  }

const CONNECTIONS = [1, 8, 64]
const slices: Duration = options.quick
  ? { warm_up: 300, slice: 200, slices: 5 }
  : { warm_up: 500, slice: 250, slices: 16 }
/** The warm-up is long enough for about ten thousand runs. More runs would not change the compiled code. */
const WARM_UP: Duration = { warm_up: options.quick ? 1_500 : 6_000, slice: 100, slices: 1 }
const START_ROUNDS = options.quick ? 3 : 9

const chosen = operations.filter(({ name }) => name.includes(options.only ?? ''))

const progress = (text: string): void => void process.stderr.write(`${text} …\n`)

type Targets = Partial<Record<'ours' | 'peer' | 'one' | 'two', Target>>

/**
 * Measures an operation at each number of connections on one server after the other. The servers take turns,
 * so that a change in the machine's speed affects all of them.
 */
const measureRow = async (targets: Targets, operation: Operation): Promise<OperationRow> => {
  const row: OperationRow = { operation }
  const { two, ...rest } = targets
  const names = (Object.keys(operation.on_copies ? targets : rest) as (keyof Targets)[]).flatMap(name => {
    const target = targets[name]
    return target ? [{ name, target }] : []
  })
  for (const { target } of names) await measureOperation(target, operation, 8, WARM_UP)
  for (const count of operation.connections ?? CONNECTIONS)
    for (const { name, target } of names) {
      if (target === two && count !== 8) continue
      const measured = await measureOperation(target, operation, count, slices)
      if (!measured) continue
      row[name] ??= new Map()
      row[name].set(count, measured)
    }
  return row
}

const startsOf = async (node: string | undefined): Promise<Omit<StartRow, 'loaded'>[]> => {
  if (options.only) return []
  progress('starts')
  const starts = [{ name: 'gatehouse', start: await gatehouseStart(START_ROUNDS) }]
  if (node) starts.push({ name: PEER, start: await peerStart(START_ROUNDS, node) })
  return starts
}

const runAll = async (): Promise<void> => {
  const node = options['no-peer'] ? undefined : await findNode()
  if (!node && !options['no-peer'])
    print('The peer is left out: neither npm nor this machine has a node with node:sqlite.')
  const postgres = options['no-postgres'] ? undefined : await startPostgresBench()
  if (!postgres && !options['no-postgres'])
    print('PostgreSQL is left out: it is not installed (Debian: apt-get install postgresql).')
  const floor = await measureFloor(slices)
  print(
    `${cpus()[0]?.model.trim()}, ${cpus().length} cores. Bun.serve without an application: ${number(floor, 1)} µs ` +
      `per answer (${FLOOR} µs on the machine of the limits).\nEach commit is synced to disk; audit events and the log are on.`,
  )
  const targets: Targets = {}
  try {
    const starts = await startsOf(node)
    targets.ours = await gatehouseTarget()
    if (node) targets.peer = await peerTarget(node)
    if (postgres) {
      targets.one = await postgres.one()
      targets.two = await postgres.two()
    }
    const rows: OperationRow[] = []
    for (const operation of chosen) {
      progress(operation.name)
      rows.push(await measureRow(targets, operation))
    }
    printOperations(rows, node && PEER)
    if (postgres) printPostgres(rows, postgres.version)
    if (postgres) printCopies(rows.filter(({ two }) => two))
    const loaded = [targets.ours, targets.peer].map(target => target && memoryOf(target.process.pid))
    if (starts.length > 0) printStarts(starts.map((row, i) => ({ ...row, loaded: loaded[i] })))
    if (!options.only) await printRest(targets.ours)
  } finally {
    for (const target of Object.values(targets)) await stopTarget(target)
    postgres?.remove()
  }
}

const printRest = async (ours: Target): Promise<void> => {
  progress('flood of logins')
  const { idle, flooded } = await measureFlood(ours, slices)
  const times = flooded.p99 / idle.p99
  print(
    `\nRefresh at 8 connections under a flood of logins: p99 ${number(flooded.p99, 2)} ms, ${number(times, 1)} times ` +
      `the ${number(idle.p99, 2)} ms without (limit ${against(times, 2)}); p50 ${number(flooded.p50, 2)} and ${number(idle.p50, 2)} ms.`,
  )
  progress('refused logins')
  const refusals = await measureRefusals(options.quick ? 50 : 300)
  const times_apart = Math.max(...Object.values(refusals)) / Math.min(...Object.values(refusals))
  const shown = Object.entries(refusals).map(([who, ms]) => `${who} ${number(ms, 2)}`)
  print(
    `A refused login, median ms: ${shown.join(', ')}; ${number((times_apart - 1) * 100, 1)} % apart (limit ${against(times_apart, 1.05)}).`,
  )
  progress('SDK')
  for (const { alg, jose, sdk, overhead } of await benchSdk())
    print(
      `SDK, verify ${alg}: ${number(sdk, 1)} µs, bare jose ${number(jose, 1)}, overhead ${number(overhead, 1)} (limit ${against(overhead, 10)})`,
    )
  progress('development')
  await printDevelopment(START_ROUNDS)
  progress('deliveries')
  await printDeliveries()
}

// `process.exit` runs the handlers that stop the processes of this run, such as the database.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
/** Measures two servers alternately. Returns the names of the rows whose ratio exceeds the tolerance. */
const byTurns = (
  start: { ours(): Promise<Target>; theirs(): Promise<Target> },
  measured: Operation[],
  tolerance: number,
): Promise<string[]> =>
  compare({
    start,
    operations: measured,
    connections: Number(options.connections),
    warm_up: WARM_UP,
    duration: { ...slices, warm_up: 100 },
    progress,
    tolerance,
  })
/** Measures this build and another executable alternately, on SQLite or on one PostgreSQL server. */
const againstBuild = async (executable: string): Promise<void> => {
  const postgres = options.postgres ? await startPostgresBench() : undefined
  if (options.postgres && !postgres)
    throw new Error('PostgreSQL is not installed: apt-get install postgresql')
  const target = postgres?.one ?? gatehouseTarget
  const at = Number(options.connections)
  const measured = chosen.filter(({ connections = CONNECTIONS }) => connections.includes(at))
  try {
    const dearer = await byTurns(
      { ours: () => target(), theirs: () => target(executable) },
      measured,
      TOLERANCE,
    )
    if (dearer.length === 0) return
    console.error(`More than 5 % dearer: ${dearer.join(', ')}`)
    process.exitCode = 1
  } finally {
    postgres?.remove()
  }
}

const { floor } = options
if (floor === 'bare' || floor === 'required')
  await byTurns(
    { ours: () => bareTarget(floor), theirs: () => gatehouseTarget(other) },
    chosen.filter(({ name }) => BARE_OPERATIONS.includes(name)),
    Number.POSITIVE_INFINITY,
  )
else if (other) await againstBuild(other)
else if (options.deliveries) await printDeliveries()
else if (options.large)
  await runLarge(Number(options.users ?? 1e6), Number(options.events ?? 1e7), { ...slices, slices: 8 })
else if (options.steady)
  await runSteady({
    users: Number(options.users ?? 50_000),
    events: Number(options.events ?? 300_000),
    expired: options.quick ? 100_000 : 1_000_000,
    applied: options.quick ? 1_000 : 10_000,
    quiet: options.quick ? 8_000 : 20_000,
  })
else await runAll()
if (options.write !== undefined)
  writeFileSync(
    options.write,
    written(
      '`bun run bench` printed this: CPU time of the whole server process for one operation, compared with the same operation of oidc-provider. Compare the ratios; the times are those of one machine.',
    ),
  )
