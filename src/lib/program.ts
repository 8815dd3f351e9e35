import { closeSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'

const source = import.meta.dir.startsWith('/$bunfs') ? [] : [join(import.meta.dir, '../main.ts')]

/** Returns `process.execPath`, or `link` when the path no longer names the file to which `link` leads. */
const pathOf = (link: string): string => {
  const [linked, installed] = [link, process.execPath].map(path => statSync(path, { throwIfNoEntry: false }))
  const isReplaced = linked && (linked.ino !== installed?.ino || linked.dev !== installed.dev)
  return isReplaced ? link : process.execPath
}

/**
 * Returns the path of the running executable. A child process that exchanges messages with this process, or
 * opens the same database, must have the same version. After an upgrade `process.execPath` names the new file
 * or no file, but on Linux /proc still leads to the old file:
 * https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html
 */
export const runningExecutable = (): string => pathOf(`/proc/${process.pid}/exe`)

/** Returns the command that starts {@link runningExecutable}. */
export const runningProgram = (): string[] => [runningExecutable(), ...source]

/** An executable that is kept open. On Linux it can be started even after its path names another file. */
interface HeldProgram {
  /** Returns the command that starts it. */
  command(): string[]
  /** Closes the file. */
  release(): void
}

/** Opens the installed executable. After an upgrade this is the new version. */
export const holdInstalled = (): HeldProgram => {
  const file = openSync(process.execPath, 'r')
  return {
    command: () => [pathOf(`/proc/${process.pid}/fd/${file}`), ...source],
    release: () => closeSync(file),
  }
}

/** True while a process with this id runs. The process may belong to any user. */
export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
