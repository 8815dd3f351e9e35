import { type ChildProcess, spawn } from 'node:child_process'
import { controlsOf } from './controls.ts'
import type { Gatehouse, GatehouseOptions } from './types.ts'

export type * from './types.ts'

/** Options of `startGatehouse` when the executable runs as a process of its own. */
export interface ProcessOptions extends GatehouseOptions {
  /** Path of the executable; default: `gatehouse` on the PATH. */
  executable?: string
}

interface ReadyLine {
  url: string
  local_url: string
  control_token: string
  client_id: string
  client_secret: string | null
  ca_file: string | null
}

/**
 * Starts a Gatehouse server in its own process, on a temporary store and a free port, seeded: for Node, Deno
 * and Bun.
 *
 * @param options all have defaults
 * @returns the running server with its controls; `close` stops it and deletes the store
 * @throws Error with the output of the executable when it does not start
 *
 * @example
 * await using server = await startGatehouse({ executable: './gatehouse' })
 * const { token } = await server.mint({ user: 'alice' })
 */
export const startGatehouse = async (options: ProcessOptions = {}): Promise<Gatehouse> => {
  const { executable = 'gatehouse', seed } = options
  const child = spawn(executable, ['dev', ...argumentsOf(options)], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.end(seed ? JSON.stringify(seed) : '')
  const ready = await readyLine(child)
  const close = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGTERM')
    await gone
  }
  const { local_url, control_token, url, client_id, client_secret, ca_file } = ready
  return {
    ...controlsOf({ url: local_url, control_token }),
    url,
    client_id,
    client_secret,
    ca_file,
    close,
    [Symbol.asyncDispose]: close,
  }
}

const argumentsOf = ({ seed, port = 0, url, internal_url, tls, auto_login }: GatehouseOptions): string[] => [
  ...['--port', String(port)],
  ...(seed ? ['--seed', '-'] : []),
  ...(url === undefined ? [] : ['--url', url]),
  ...(internal_url === undefined ? [] : ['--internal-url', internal_url]),
  ...(tls ? ['--tls'] : []),
  ...(auto_login ? ['--auto-login'] : []),
]

/** Resolves with the ready line of the server; rejects with its output when it ends before. */
const readyLine = (child: ChildProcess): Promise<ReadyLine> =>
  new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    child.stdout?.on('data', chunk => {
      output += chunk
      const line = output.split('\n').find(text => text.startsWith('{"event":"ready"'))
      if (line) resolve(JSON.parse(line))
    })
    child.stderr?.on('data', chunk => {
      errors += chunk
    })
    child.once('error', reject)
    child.once('close', () => reject(new Error(`gatehouse dev did not start: ${errors || output}`)))
  })
