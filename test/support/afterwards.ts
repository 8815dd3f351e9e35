/**
 * Starts a shell that runs `command` after this process has ended in any way. Bun's test runner does not fire
 * the event `exit`.
 */
export const afterwards = (command: string): void => {
  const watch = `while kill -0 ${process.pid} 2>/dev/null; do sleep 1; done; ${command}`
  Bun.spawn(['sh', '-c', watch], { detached: true, stdio: ['ignore', 'ignore', 'ignore'] }).unref()
}
