import { retryLater } from './app-error.ts'

/**
 * The queue in which a job waits. Each organization has one queue for logins from known browsers, one for
 * other logins and one for other work.
 */
export interface HashLane {
  work: 'login' | 'change'
  /** The organization's id or slug. For a login from a known browser, `:known` is appended. */
  organization: string
  /** Result of `networkOf`; undefined for work that is not attributed to a network. */
  network?: string | undefined
}

interface Waiting {
  network: string | undefined
  start: () => void
}

/**
 * Returns a queue that runs at most `slots` jobs concurrently and lets at most `waiting` jobs of each kind of
 * work wait. Free slots go to logins and to other work alternately. Within each kind of work, the
 * organizations take turns. The number of slots is limited because argon2 runs on threads of the runtime, and
 * more jobs would take the cores from other work.
 *
 * Each waiting job takes one of the `waiting` seats of its kind of work. A job is refused when its
 * organization already has as many waiting jobs as there are free seats. When only one organization has
 * waiting jobs, it therefore gets half of the seats, and a second organization always finds free seats. The
 * networks of an organization share its seats by the same rule, and a single network gets a third of all
 * seats. This is the rule of dynamic queue thresholds (Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998).
 *
 * The queue throws AppError 503 `temporarily_unavailable` with `Retry-After` when it refuses a job. The job
 * then does not start.
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
      // Maps keep insertion order, so this organization moves to the end.
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
      // The next job takes over the slot. If no job waits, the slot becomes free.
      const next = dequeue()
      if (next) next.start()
      else running--
    }
  }
  return Object.assign(run, { waiting: () => sizes.login + sizes.change })
}

export type FairQueue = ReturnType<typeof fairQueue>

const other = { login: 'change', change: 'login' } as const
