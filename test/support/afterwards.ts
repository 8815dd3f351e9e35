/** Has a shell run `command` once this process is gone, however it ended: Bun's test runner fires no `exit`. */
export const afterwards = (command: string): void => {
  const watch = `while kill -0 ${process.pid} 2>/dev/null; do sleep 1; done; ${command}`
  Bun.spawn(['sh', '-c', watch], { detached: true, stdio: ['ignore', 'ignore', 'ignore'] }).unref()
}
