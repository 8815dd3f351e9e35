import { cpuTime } from './server-process.ts'

export interface Measured {
  /** CPU time of the server in µs: the sum over the processes of all copies. */
  cpu_per_op: number
  /** CPU time in µs of the database, if it has processes of its own. */
  database_per_op: number
  /** Retried transactions per commit, if the server reports them. */
  retried?: number
  ops_per_second: number
  /** ms */
  p50: number
  p99: number
}

export interface Duration {
  /** Milliseconds of the warm-up, and of each measured slice. */
  warm_up: number
  slice: number
  slices: number
}

/** Ids of the measured processes. Database processes start and end with their connections. */
export interface Processes {
  server: number[]
  database(): number[]
}

/**
 * Repeats all `steps` at the same time. Each step has a connection of its own. The CPU time per operation is
 * the median of the slices, because bursts of other work on the machine distort a mean.
 */
export const measure = async (
  { server, database }: Processes,
  steps: (() => Promise<void>)[],
  { warm_up, slice, slices }: Duration,
): Promise<Measured> => {
  const latencies: number[] = []
  let done = 0
  let measuring = false
  let over = false
  const worker = async (step: () => Promise<void>): Promise<void> => {
    while (!over) {
      const began = Bun.nanoseconds()
      await step()
      done += 1
      if (measuring) latencies.push(Bun.nanoseconds() - began)
    }
  }
  const workers = Promise.all(steps.map(worker))
  const sampled = (async () => {
    await Bun.sleep(warm_up)
    measuring = true
    const pids = { server, database: database() }
    const spent = () => ({ server: cpuTime(pids.server), database: cpuTime(pids.database) })
    const costs: ReturnType<typeof spent>[] = []
    const began = { at: performance.now(), done }
    for (let i = 0; i < slices; i++) {
      const before = { ...spent(), done }
      await Bun.sleep(slice)
      const after = spent()
      const operations = done - before.done
      if (operations > 0)
        costs.push({
          server: (after.server - before.server) / operations,
          database: (after.database - before.database) / operations,
        })
    }
    over = true
    const seconds = (performance.now() - began.at) / 1000
    latencies.sort((a, b) => a - b)
    const percentile = (share: number) =>
      (latencies[Math.floor(latencies.length * share)] ?? Number.NaN) / 1e6
    return {
      cpu_per_op: median(costs.map(cost => cost.server)),
      database_per_op: median(costs.map(cost => cost.database)),
      ops_per_second: (done - began.done) / seconds,
      p50: percentile(0.5),
      p99: percentile(0.99),
    }
  })()
  // A worker that fails ends the measurement at once.
  const [measured] = await Promise.all([Promise.race([sampled, workers.then(() => sampled)]), workers])
  return measured
}

export const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
