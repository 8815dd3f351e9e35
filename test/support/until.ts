/**
 * Repeats the check until it returns true. This waits for events in another process or thread. The test's
 * timeout is the limit.
 */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await Bun.sleep(5)
}
