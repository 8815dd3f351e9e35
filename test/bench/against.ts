import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Duration, median } from './load.ts'
import { measureOperation, type Operation } from './operations.ts'
import { number, print, table } from './table.ts'
import { stopTarget, type Target } from './target.ts'

const ROUNDS = 3
/**
 * Maximum ratio of the CPU times of an operation. Above this ratio, the operation counts as more expensive.
 */
export const TOLERANCE = 1.05

/** Returns the executable of a checkout. Returns `path` itself if it is not a directory. */
export const executableAt = (path: string): string =>
  resolve(statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'dist/gatehouse') : path)

interface Compared {
  /** CPU time per operation in µs, for each round. */
  ours: number[]
  theirs: number[]
}

const addRound = (row: Compared, costs: Compared): void => {
  row.ours.push(median(costs.ours))
  row.theirs.push(median(costs.theirs))
}

const ratioOf = ({ ours, theirs }: Compared): number =>
  median(ours.map((cost, round) => cost / (theirs[round] ?? Number.NaN)))

interface Comparison {
  /** `ours` starts a server of this build. `theirs` starts a server of another build, or the bare stack. */
  start: Record<keyof Compared, () => Promise<Target>>
  operations: Operation[]
  connections: number
  warm_up: Duration
  duration: Duration
  progress(text: string): void
  /** Ratio above which an operation is reported as more expensive. */
  tolerance: number
}

/**
 * Prints the CPU time of this build divided by the CPU time of the other server. Each operation has the
 * median of three rounds. The time of database processes has separate rows. Each round restarts both servers
 * and measures them alternately in short slices, so that a change in the machine's speed affects both
 * servers.
 *
 * @returns the names of the rows whose ratio exceeds `tolerance`
 */
export const compare = async (comparison: Comparison): Promise<string[]> => {
  const { start, operations, connections, warm_up, duration, progress, tolerance } = comparison
  const rows = new Map<string, Compared>()
  const rowOf = (name: string): Compared => {
    const row = rows.get(name) ?? { ours: [], theirs: [] }
    rows.set(name, row)
    return row
  }
  for (let round = 1; round <= ROUNDS; round++) {
    const targets: { side: keyof Compared; target: Target }[] = []
    try {
      const sides: (keyof Compared)[] = round % 2 === 0 ? ['theirs', 'ours'] : ['ours', 'theirs']
      for (const side of sides) targets.push({ side, target: await start[side]() })
      for (const operation of operations) {
        const { name } = operation
        progress(`round ${round} of ${ROUNDS}: ${name}`)
        for (const { target } of targets) await measureOperation(target, operation, connections, warm_up)
        const costs: Compared = { ours: [], theirs: [] }
        const database: Compared = { ours: [], theirs: [] }
        for (let turn = 0; turn < duration.slices; turn++)
          for (const { side, target } of turn % 2 === 0 ? targets : targets.toReversed()) {
            const cost = await measureOperation(target, operation, connections, { ...duration, slices: 1 })
            if (cost) costs[side].push(cost.cpu_per_op)
            if (cost && target.database) database[side].push(cost.database_per_op)
          }
        addRound(rowOf(name), costs)
        if (database.ours.length > 0) addRound(rowOf(`${name}, database`), database)
      }
    } finally {
      for (const { target } of targets) await stopTarget(target)
    }
  }
  const isJudged = Number.isFinite(tolerance)
  const ratios = [...rows].map(([name, row]) => ({ name, row, ratio: ratioOf(row) }))
  const lines = ratios.map(({ name, row, ratio }) => [
    name,
    number(median(row.ours)),
    number(median(row.theirs)),
    ...row.ours.map((cost, round) => number(cost / (row.theirs[round] ?? Number.NaN), 3)),
    number(ratio, 3),
    ...(isJudged ? [ratio > tolerance ? 'DEARER' : 'ok'] : []),
  ])
  const rounds = Array.from({ length: ROUNDS }, (_, round) => `round ${round + 1}`)
  print(
    table(
      [
        `CPU µs per operation @${connections}`,
        'this',
        'other',
        ...rounds,
        'median',
        ...(isJudged ? [`at most ${tolerance}`] : []),
      ],
      lines,
    ),
  )
  return ratios.filter(({ ratio }) => ratio > tolerance).map(({ name }) => name)
}
