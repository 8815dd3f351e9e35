import type { Family, Metrics } from '#src/lib/metrics.ts'

const COMMITS: Family = { name: 'gatehouse_commits_total', help: 'Commits by outcome.', label: 'outcome' }

export type CommitMetrics = ReturnType<typeof commitMetrics>

/** How many writes wait for their commit, and what became of the commits. */
export const commitMetrics = (metrics: Metrics) => {
  let waiting = 0
  metrics.gauge('gatehouse_commit_queue', 'Writes that wait for their commit.', () => waiting)
  return {
    /** So many writes more, or fewer, wait. */
    queued(change: number): void {
      waiting += change
    },
    committed: (outcome: 'done' | 'failed' | 'retried'): void => metrics.count(COMMITS, outcome),
  }
}
