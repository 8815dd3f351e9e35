import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A measured server, with its own process and directory. */
export interface ServerProcess {
  pid: number
  port: number
  directory: string
  /** Milliseconds from the spawn to the first 200 of `probe`. */
  started_in: number
  stop(): Promise<void>
}

interface StartOptions {
  command: string[]
  env: Record<string, string>
  port: number
  directory: string
  /** Path whose first 200 shows that the server is ready. */
  probe: string
}

export const freshDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'gatehouse-bench-'))

export const removeDirectory = (directory: string): Promise<void> =>
  rm(directory, { recursive: true, force: true })

export const freePort = async (): Promise<number> => {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  listener.stop(true)
  return listener.port
}

const PATIENCE = 60_000

/**
 * Starts a server and waits for its first answer. The output goes to a file, because service managers also
 * write output to files.
 */
export const start = async (options: StartOptions): Promise<ServerProcess> => {
  const { command, env, port, directory, probe } = options
  const output = join(directory, 'output.log')
  const began = performance.now()
  const child = Bun.spawn(command, {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', HOME: directory, ...env },
    stdout: Bun.file(output),
    stderr: Bun.file(join(directory, 'errors.log')),
  })
  const answered = async (): Promise<boolean> => {
    try {
      return (await fetch(`http://127.0.0.1:${port}${probe}`)).ok
    } catch {
      return false
    }
  }
  while (!(await answered())) {
    if (child.exitCode !== null || performance.now() - began > PATIENCE) {
      child.kill('SIGKILL')
      throw new Error(`${command[0]} did not start:\n${await Bun.file(join(directory, 'errors.log')).text()}`)
    }
    await Bun.sleep(1)
  }
  const started_in = performance.now() - began
  return {
    pid: child.pid,
    port,
    directory,
    started_in,
    stop: async () => {
      child.kill()
      await child.exited
    },
  }
}

/** Returns the CPU time of all threads of these processes so far, in µs. */
export const cpuTime = (pids: number[]): number => {
  let ns = 0
  for (const pid of pids)
    for (const task of unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      const file = `/proc/${pid}/task/${task}/schedstat`
      ns += Number(unlessGone(() => readFileSync(file, 'latin1'))?.split(' ', 1)[0] ?? 0)
    }
  return ns / 1000
}

/**
 * Returns undefined when the file is gone, because threads and database connections can end during the loop.
 */
const unlessGone = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

export interface Memory {
  rss: number
  pss: number
}

/** Returns the memory of a process in MiB. */
export const memoryOf = (pid: number): Memory => {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const field = (name: string) => Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(rollup)?.[1]) / 1024
  return { rss: field('Rss'), pss: field('Pss') }
}
