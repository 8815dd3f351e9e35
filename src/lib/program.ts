import { readlinkSync } from 'node:fs'
import { join } from 'node:path'

const source = import.meta.dir.startsWith('/$bunfs') ? [] : [join(import.meta.dir, '../main.ts')]

/** Command of the installed program: a process that it starts has the code of an upgrade. */
export const installedProgram: readonly string[] = [process.execPath, ...source]

/**
 * Returns the path of the running executable, for child processes that speak to this one or open its
 * database: both must be of one version. After an upgrade another file has the name, or none; on Linux /proc
 * leads to the old one: https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html
 */
export const runningExecutable = (): string => {
  const running = `/proc/${process.pid}/exe`
  try {
    return readlinkSync(running) === process.execPath ? process.execPath : running
  } catch {
    return process.execPath
  }
}

/** Returns the command of {@link runningExecutable}. */
export const runningProgram = (): string[] => [runningExecutable(), ...source]
