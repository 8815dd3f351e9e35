/** Asks until the answer is yes: what is waited for happens in another process or thread. The test's timeout is the bound. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await Bun.sleep(5)
}
