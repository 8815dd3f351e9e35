import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { adminAt } from './admin-calls.ts'
import type { Json } from './app.ts'

export const EXECUTABLE = join(import.meta.dir, '../../dist/gatehouse')
export const SECRET = 'the-admin-secret-of-the-executable-under-test'

/** Returns the path of the executable. Builds the executable if it does not exist. */
const executable = async (): Promise<string> => {
  if (!existsSync(EXECUTABLE)) await Bun.$`bun run build`.cwd(join(import.meta.dir, '../..')).quiet()
  return EXECUTABLE
}

export interface Finished {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command of the executable to its end. */
export const gatehouse = async (
  args: string[],
  env: Record<string, string> = {},
  /** Text for standard input. */
  input = '',
): Promise<Finished> => {
  const child = Bun.spawn([await executable(), ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: new TextEncoder().encode(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr }
}

export interface Running {
  url: string
  port: number
  data_dir: string
  pid: number
  /** Output of the server so far. */
  output(): string
  /** Calls the admin API as the first admin client. */
  admin(method: string, path: string, body?: unknown): Promise<{ status: number; body: Json }>
  signal(name: 'SIGTERM' | 'SIGKILL' | 'SIGHUP'): void
  /** Resolves to the exit code when the process has ended and its output is read. */
  exited: Promise<number>
}

/** Starts `gatehouse serve` on a free port and waits for its ready line. */
export const serveExecutable = async (
  env: Record<string, string> = {},
  data_dir?: string,
  path?: string,
): Promise<Running & AsyncDisposable> => {
  const directory = data_dir ?? (await mkdtemp(join(tmpdir(), 'gatehouse-')))
  const child = Bun.spawn([path ?? (await executable()), 'serve'], {
    cwd: directory,
    env: {
      PATH: process.env.PATH ?? '',
      GATEHOUSE_PORT: '0',
      GATEHOUSE_DATA_DIR: directory,
      GATEHOUSE_ADMIN_CLIENT_SECRET: SECRET,
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let output = ''
  const ready = Promise.withResolvers<Json>()
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true })
      const [line] = /^\{"event":"ready".*(?=\n)/m.exec(output) ?? []
      if (line) ready.resolve(JSON.parse(line))
    }
  }
  const collected = Promise.all([collect(child.stdout), collect(child.stderr)])
  void collected.then(() => ready.reject(new Error(`no ready line:\n${output}`)))
  const { url, port } = await ready.promise

  return {
    url,
    port,
    data_dir: directory,
    pid: child.pid,
    output: () => output,
    exited: collected.then(() => child.exited),
    signal: name => child.kill(name),
    admin: adminAt(url, SECRET),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await child.exited
      if (!data_dir) await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Stops the server with SIGTERM and returns the exit code. */
export const stop = (server: Running): Promise<number> => {
  server.signal('SIGTERM')
  return server.exited
}

export const addRole = (server: Running, name: string) =>
  server.admin('POST', '/roles', { name, description: '', permissions: [] })
export const roleNames = async (server: Running): Promise<string[]> =>
  (await server.admin('GET', '/roles')).body.data.map((role: { name: string }) => role.name)
