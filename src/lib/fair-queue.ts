import { retryLater } from './app-error.ts'

/** A queue of jobs, by kind of work and organization. */
export interface HashLane {
  work: 'login' | 'change'
  /** The organization's id or slug, with `:known` for its known browsers. */
  organization: string
  /** As `networkOf` names it; undefined for work that no network is held to. */
  network?: string | undefined
}

interface Waiting {
  network: string | undefined
  start: () => void
}

/**
 * At most `slots` jobs at once and `waiting` of each kind of work behind them. Slots go to logins and other
 * work by turns, and to the organizations of each by turns. argon2 runs on the runtime's own threads, where
 * more at once would only take the cores from everything else.
 *
 * An organization may wait with as many jobs as places are left, so one alone gets half of them and a further one always finds
 * some; likewise the networks of an organization, of which one alone gets a third (dynamic queue thresholds, Choudhury and
 * Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
 *
 * @throws AppError 503 `temporarily_unavailable` with `Retry-After` past that; the job is then never begun
 */
export const fairQueue = (slots: number, waiting: number) => {
  const queues = { login: new Map<string, Waiting[]>(), change: new Map<string, Waiting[]>() }
  const sizes = { login: 0, change: 0 }
  let running = 0
  let turn: HashLane['work'] = 'login'

  const enqueue = ({ work, organization, network }: HashLane, start: () => void): void => {
    const own = queues[work].get(organization) ?? []
    const left = waiting - sizes[work] - own.length
    const beside = network ? own.filter(job => job.network === network).length : 0
    if (left <= 0 || beside >= left)
      throw retryLater(
        'temporarily_unavailable',
        'Too many passwords are being checked at present. Try again in a moment.',
        2000,
      )
    own.push({ network, start })
    queues[work].set(organization, own)
    sizes[work]++
  }

  const dequeue = (): Waiting | undefined => {
    const work = sizes[turn] > 0 ? turn : other[turn]
    for (const [organization, own] of queues[work]) {
      turn = other[work]
      sizes[work]--
      queues[work].delete(organization)
      const next = own.shift()
      // A map keeps the order of insertion: this organization is now the last.
      if (own.length > 0) queues[work].set(organization, own)
      return next
    }
    return undefined
  }

  const run = async <T>(lane: HashLane, job: () => Promise<T>): Promise<T> => {
    if (running < slots) running++
    else await new Promise<void>(start => enqueue(lane, start))
    try {
      return await job()
    } finally {
      // The slot passes on to the next job, or is free again.
      const next = dequeue()
      if (next) next.start()
      else running--
    }
  }
  return Object.assign(run, { waiting: () => sizes.login + sizes.change })
}

export type FairQueue = ReturnType<typeof fairQueue>

const other = { login: 'change', change: 'login' } as const
