import { counter, gauge } from '#src/lib/metrics.ts'

let waiting = 0
gauge('gatehouse_commit_queue', 'Writes that wait for their commit.', () => waiting)

/** So many writes more, or fewer, wait. */
export const queued = (change: number): void => {
  waiting += change
}

export const committed = counter('gatehouse_commits_total', 'Commits by outcome.', 'outcome')
