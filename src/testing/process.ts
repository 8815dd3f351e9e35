import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connectGatehouse } from './controls.ts'
import type { Gatehouse, GatehouseOptions } from './types.ts'

export { connectGatehouse } from './controls.ts'
export type * from './types.ts'

/** Options of `startGatehouse` when the executable runs as a process of its own. */
export interface ProcessOptions extends GatehouseOptions {
  /** Path of the executable; default: `gatehouse` on the PATH. */
  executable?: string
  /**
   * Container image to run in place of the executable, such as `gatehouse:0.1.0`. `tls` needs the executable,
   * because the certificate would stay in the container. `auto_login` needs the executable too, because other
   * machines may reach a container.
   */
  image?: string
  /** Command that starts a container; options and image are appended. Default: `['docker', 'run']`. */
  engine?: string[]
}

interface ReadyLine {
  url: string
  local_url: string
  control_token: string
  client_id: string
  client_secret: string | null
  password: string
  ca_file: string | null
}

/**
 * Starts a seeded Gatehouse server in its own process or in a container, on a temporary store and a free
 * port. It works in Node, Deno and Bun.
 *
 * This process keeps the standard input of the server open. When this process is killed or ends without
 * `close`, the input ends. The server then stops and deletes its store.
 *
 * @param options all have defaults
 * @returns the running server with its controls; `close` stops it and deletes the store
 * @throws Error with the output of the executable when it does not start, and for `tls` with an image
 *
 * @example
 * await using server = await startGatehouse({ executable: './gatehouse' })
 * const { token } = await server.mint({ user: 'alice' })
 *
 * @example
 * await using server = await startGatehouse({ image: 'gatehouse:0.1.0' })
 */
export const startGatehouse = async (options: ProcessOptions = {}): Promise<Gatehouse> => {
  const { executable = 'gatehouse', image, seed } = options
  const [program = '', ...args] =
    image === undefined
      ? [executable, 'dev', ...argumentsOf(options)]
      : await containerCommand(image, options)
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  // A server that fails to start closes the pipe. The error EPIPE is ignored, so that the caller gets the
  // message of the server.
  child.stdin.on('error', () => {})
  if (seed) child.stdin.write(`${JSON.stringify(seed)}\n...\n`)
  const ready = await readyLine(child, program)
  release(child)
  const close = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise(resolve => child.once('exit', resolve))
    child.ref()
    child.kill('SIGTERM')
    await gone
  }
  const { local_url, control_token, url, client_id, client_secret, password, ca_file } = ready
  return {
    ...connectGatehouse({ url: local_url, control_token, ca_file }),
    url,
    client_id,
    client_secret,
    password,
    ca_file,
    close,
    [Symbol.asyncDispose]: close,
  }
}

const argumentsOf = ({
  seed,
  port = 0,
  url,
  internal_url,
  public_issuer,
  tls,
  auto_login,
}: GatehouseOptions): string[] => [
  ...['--port', String(port), '--until-input-ends'],
  ...(seed ? ['--seed', '-'] : []),
  ...(url === undefined ? [] : ['--url', url]),
  ...(internal_url === undefined ? [] : ['--internal-url', internal_url]),
  ...(public_issuer ? ['--public-issuer'] : []),
  ...(tls ? ['--tls'] : []),
  ...(auto_login ? ['--auto-login'] : []),
]

/**
 * Returns the command that runs the image. The issuer contains the port on this machine, so the container
 * listens on the same port.
 */
const containerCommand = async (image: string, options: ProcessOptions): Promise<string[]> => {
  if (options.tls)
    throw new Error(
      'tls: not available with an image, because the certificate stays in the container. Start the executable instead.',
    )
  const { engine = ['docker', 'run'] } = options
  const port = options.port || (await freePort())
  const url = options.url ?? `http://localhost:${port}`
  return [
    ...engine,
    // The server reads the seed from standard input. It stops when the input ends.
    ...['--rm', '--interactive', '--publish', `127.0.0.1:${port}:${port}`, image],
    ...['dev', '--dev-host', '0.0.0.0', ...argumentsOf({ ...options, port, url })],
  ]
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

/**
 * Resolves to the ready line of the server. Rejects with the server's output when the process ends before it
 * has written this line. Later output is read and dropped, so that the pipes of the process never fill.
 */
const readyLine = (child: ChildProcessWithoutNullStreams, program: string): Promise<ReadyLine> =>
  new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    const collect = (chunk: Buffer) => {
      output += chunk
      // The last part may be the beginning of a line.
      const line = output
        .split('\n')
        .slice(0, -1)
        .find(text => text.startsWith('{"event":"ready"'))
      if (!line) return
      child.stdout.off('data', collect).resume()
      child.stderr.off('data', collectErrors).resume()
      resolve(JSON.parse(line))
    }
    const collectErrors = (chunk: Buffer) => {
      errors += chunk
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collectErrors)
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new Error(
              `The program ${program} was not found: put it on the PATH, or set the option executable or engine.`,
            )
          : error,
      ),
    )
    child.once('close', () => reject(new Error(`gatehouse dev did not start: ${errors || output}`)))
  })

/**
 * Lets this process end while the server runs, so that a test that never calls `close` still ends. The server
 * then stops, because its standard input ends.
 */
const release = (child: ChildProcessWithoutNullStreams): void => {
  child.unref()
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as unknown as Socket).unref?.()
}
