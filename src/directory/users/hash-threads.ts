import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, getPriority, setPriority } from 'node:os'

/**
 * Difference between the niceness of a hash thread and that of the main thread. A difference of 10 gives the
 * hash thread about a tenth of the main thread's CPU weight: sched(7).
 */
const LOWER_PRIORITY = 10
/** The lowest priority of Linux. */
const LOWEST_PRIORITY = 19
const TASKS = '/proc/self/task'

const lowered = new Set<string>()

/**
 * Gives the threads that hash passwords (the runtime's pool) a lower priority than the main thread. Otherwise
 * a flood of logins would delay all other requests. On Linux each thread has its own priority
 * (setpriority(2), "BUGS"). On other systems the function does nothing. Each
 * computation of a hash calls this function, because the pool starts its threads one by one, as work arrives.
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
    // The thread has ended, or the system refuses the change. Hashing continues at the old priority.
  }
}
