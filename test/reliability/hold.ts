/** Maximum milliseconds for which an input may block the event loop. */
export const LONGEST_HOLD = 1_000

interface Timed<T> {
  result: T
  /**
   * The smaller of two times in milliseconds: the elapsed time and the CPU time of this process. Other
   * processes on a busy machine therefore do not count.
   */
  spent: number
}

export const timed = async <T>(work: () => Promise<T>): Promise<Timed<T>> => {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  const result = await work()
  const { user, system } = process.cpuUsage(cpu)
  return { result, spent: Math.min(performance.now() - began, (user + system) / 1_000) }
}
