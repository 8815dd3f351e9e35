import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gatehouseTarget } from './gatehouse.ts'
import { type Duration, median } from './load.ts'
import { measureOperation, type Operation } from './operations.ts'
import { number, print, table } from './table.ts'
import { stopTarget, type Target } from './target.ts'

const ROUNDS = 3
/** Ratio of CPU time per operation above which an operation of a build counts as more expensive. */
export const TOLERANCE = 1.05
const CONNECTIONS = 8

/** Returns the executable of a checkout, or the path itself when it is no directory. */
export const executableAt = (path: string): string =>
  resolve(statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'dist/gatehouse') : path)

interface Compared {
  /** CPU time per operation in µs, for each round. */
  ours: number[]
  theirs: number[]
}

const ratioOf = ({ ours, theirs }: Compared): number =>
  median(ours.map((cost, round) => cost / (theirs[round] ?? Number.NaN)))

/**
 * Prints the CPU time of each operation by this build as a ratio to that of another server, the median of
 * three rounds. Each round restarts both servers and alternates between them in short slices, so that a
 * change in the machine's speed affects both.
 *
 * @param other starts the other server: another build, or the bare stack
 * @returns the names of the operations whose ratio exceeds `tolerance`
 */
export const compareWith = async (
  other: () => Promise<Target>,
  measured: Operation[],
  warm_up: Duration,
  duration: Duration,
  progress: (text: string) => void,
  tolerance: number,
): Promise<string[]> => {
  const rows = new Map<Operation, Compared>(measured.map(operation => [operation, { ours: [], theirs: [] }]))
  for (let round = 1; round <= ROUNDS; round++) {
    const targets: { side: keyof Compared; target: Target }[] = []
    try {
      const sides: (keyof Compared)[] = round % 2 === 0 ? ['theirs', 'ours'] : ['ours', 'theirs']
      for (const side of sides)
        targets.push({ side, target: await (side === 'ours' ? gatehouseTarget() : other()) })
      for (const [operation, row] of rows) {
        progress(`round ${round} of ${ROUNDS}: ${operation.name}`)
        for (const { target } of targets) await measureOperation(target, operation, CONNECTIONS, warm_up)
        const costs: Compared = { ours: [], theirs: [] }
        for (let turn = 0; turn < duration.slices; turn++)
          for (const { side, target } of turn % 2 === 0 ? targets : targets.toReversed()) {
            const cost = await measureOperation(target, operation, CONNECTIONS, { ...duration, slices: 1 })
            if (cost) costs[side].push(cost.cpu_per_op)
          }
        row.ours.push(median(costs.ours))
        row.theirs.push(median(costs.theirs))
      }
    } finally {
      for (const { target } of targets) await stopTarget(target)
    }
  }
  const isJudged = Number.isFinite(tolerance)
  const ratios = [...rows].map(([{ name }, row]) => ({ name, row, ratio: ratioOf(row) }))
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
        `CPU µs per operation @${CONNECTIONS}`,
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
