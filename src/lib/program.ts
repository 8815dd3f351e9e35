import { statSync } from 'node:fs'
import { join } from 'node:path'

const source = import.meta.dir.startsWith('/$bunfs') ? [] : [join(import.meta.dir, '../main.ts')]

/** Command that starts the installed program. After an upgrade it starts the new version. */
export const installedProgram: readonly string[] = [process.execPath, ...source]

/**
 * Returns the path of the running executable. A child process that exchanges messages with this process, or
 * opens the same database, must have the same version. After an upgrade `process.execPath` names the new file
 * or no file, but on Linux /proc still leads to the old file:
 * https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html
 */
export const runningExecutable = (): string => {
  const link = `/proc/${process.pid}/exe`
  const [running, installed] = [link, process.execPath].map(path => statSync(path, { throwIfNoEntry: false }))
  const isReplaced = running && (running.ino !== installed?.ino || running.dev !== installed.dev)
  return isReplaced ? link : process.execPath
}

/** Returns the command that starts {@link runningExecutable}. */
export const runningProgram = (): string[] => [runningExecutable(), ...source]

/** True while a process with this id runs. The process may belong to any user. */
export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
