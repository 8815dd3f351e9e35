import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, getPriority, setPriority } from 'node:os'

/** Steps of niceness below the thread that answers: a tenth of its weight, sched(7). */
const LOWER_PRIORITY = 10
/** The system's last step. */
const LOWEST_PRIORITY = 19
const TASKS = '/proc/self/task'

const lowered = new Set<string>()

/**
 * Makes the runtime's pool, on which passwords are hashed, give way to the thread that answers requests
 * wherever both want a core. Linux gives threads a priority each (setpriority(2), "C library/kernel
 * differences"); elsewhere nothing happens. The pool's threads begin one by one, with the work.
 */
export const lowerHashThreads = (): void => {
  if (process.platform !== 'linux' || lowered.size >= availableParallelism()) return
  try {
    for (const id of readdirSync(TASKS)) {
      if (lowered.has(id) || !readFileSync(`${TASKS}/${id}/comm`, 'utf8').startsWith('Bun Pool')) continue
      setPriority(Number(id), Math.min(getPriority(process.pid) + LOWER_PRIORITY, LOWEST_PRIORITY))
      lowered.add(id)
    }
  } catch {
    // A thread that is gone by now, or a machine that allows none of this: hashing goes on as it was.
  }
}
