import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { ConfigError } from '#src/config.ts'
import { openLogger } from '#src/lib/log.ts'
import type { Started } from '#src/testing/start.ts'
import { type DevOptions, logLevelOf, startWith } from './dev.ts'

/**
 * Starts a temporary, seeded server, by default on a free port, and runs a command against the server.
 * Returns the command's exit code.
 */
export const exec = async (command: string[], options: DevOptions): Promise<number> => {
  if (!Bun.which(command[0] ?? '')) throw noCommand(command[0])
  // Standard output belongs to the command.
  const log = openLogger(logLevelOf(options, 'warn'), line => console.error(line.trimEnd()))
  const server = await startWith({ ...options, port: options.port ?? '0' }, { log })
  try {
    return await run(command, { ...process.env, ...environmentOf(server) })
  } finally {
    await server.stop()
  }
}

/**
 * Returns the environment variables that the resource-server package, other client libraries and `gatehouse
 * token` read.
 */
const environmentOf = (server: Started): Record<string, string | undefined> => ({
  SERVICE_URL: server.url,
  SERVICE_CLIENT_ID: server.client_id,
  // For a client without a secret, the command must not inherit the secret of another client.
  SERVICE_CLIENT_SECRET: server.client_secret ?? undefined,
  SERVICE_REALM: server.organization_id,
  SERVICE_DEV_TOKEN: server.control_token,
  ...(server.ca_file && { NODE_EXTRA_CA_CERTS: server.ca_file }),
})

const run = async (
  [program = '', ...args]: string[],
  env: Record<string, string | undefined>,
): Promise<number> => {
  // A terminal sends Ctrl-C to the command too, even when the input is a file. SIGINT is therefore not
  // forwarded at a terminal, because test runners take a second SIGINT as an order to abort. A SIGINT from
  // another process is thus lost.
  const hasTerminal = [0, 1, 2].some(isatty)
  const forward = (signal: NodeJS.Signals) => {
    if (signal !== 'SIGINT' || !hasTerminal) child.kill(signal)
  }
  // The handlers are set before the command starts. A signal during the start would otherwise end this
  // process and leave the command running.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, forward)
  const child = spawn([program, ...args], env)
  await child.exited
  const signals: Record<string, number> = constants.signals
  return child.signalCode ? 128 + (signals[child.signalCode] ?? 0) : (child.exitCode ?? 1)
}

const noCommand = (name = '') =>
  new ConfigError(
    name.includes('/') && existsSync(name) ? notExecutable(name) : `${name}: there is no such command.`,
  )

const notExecutable = (name: string | undefined) => `${name}: this is not an executable program.`

const spawn = (command: string[], env: Record<string, string | undefined>) => {
  try {
    return Bun.spawn(command, { env, stdin: 'inherit', stdout: 'inherit', stderr: 'inherit' })
  } catch {
    throw new ConfigError(notExecutable(command[0]))
  }
}
