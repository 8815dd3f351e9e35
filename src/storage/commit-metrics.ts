import type { Family, Metrics } from '#src/lib/metrics.ts'

const COMMITS: Family = { name: 'gatehouse_commits_total', help: 'Commits by outcome.', label: 'outcome' }

export type CommitMetrics = ReturnType<typeof commitMetrics>

/** Returns the counters of waiting writes and of commits by outcome. */
export const commitMetrics = (metrics: Metrics) => {
  let waiting = 0
  metrics.declare('counter', COMMITS)
  metrics.gauge('gatehouse_commit_queue', 'Writes waiting for their commit.', () => waiting)
  return {
    /** Adds `change` to the number of waiting writes. */
    queued(change: number): void {
      waiting += change
    },
    committed: (outcome: 'done' | 'failed' | 'retried'): void => metrics.count(COMMITS, outcome),
  }
}
