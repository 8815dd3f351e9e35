import { existsSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '#src/config.ts'
import { type DevFile, readDevFile } from '#src/dev/dev-file.ts'
import { controlsOf } from '#src/testing/controls.ts'
import type { MintOptions } from '#src/testing/types.ts'
import { loadServerConfig } from './last-start.ts'
import type { PrintedToken } from './offline-token.ts'
import { mintInputOf, type TokenOptions } from './token-options.ts'

const outputs: Record<string, (made: PrintedToken) => string> = {
  token: ({ token }) => token,
  header: ({ token }) => `Authorization: Bearer ${token}`,
  json: ({ token, expires_in }) =>
    JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in }, null, 2),
}

/**
 * Prints an access token. A development server, running or stopped, issues any token. A production instance
 * issues only a token of an existing user with that user's permissions, and records it in the audit log.
 */
export const token = async (options: TokenOptions): Promise<void> => {
  const render = outputs[options.output]
  if (!render) throw new ConfigError(`--output: not one of ${Object.keys(outputs).join(', ')}.`)
  console.log(render(await issue(options)))
}

const issue = async (options: TokenOptions): Promise<PrintedToken> => {
  const { config, sources } = loadServerConfig(options)
  const { data_dir } = config
  const { SERVICE_URL: url, SERVICE_DEV_TOKEN: control_token } = process.env
  if (options.dataDir === undefined && url && control_token)
    return controlsOf({ url, control_token }).mint(mintInputOf(options) as MintOptions)
  const hasOwn = options.dataDir !== undefined || existsSync(join(data_dir, 'gatehouse.db'))
  const file = hasOwn ? readDevFile(data_dir) : latestRunning()
  if (file && isRunning(file))
    return controlsOf({ ...file, url: file.local_url }).mint(mintInputOf(options) as MintOptions)
  if (!hasOwn && !file)
    throw new ConfigError('no development server is running: start `gatehouse dev`, or set --data-dir.')
  // The token is for the instance in the current folder. A development server that also runs would refuse
  // this token, so the message names the directory of that server.
  const other = !file && options.dataDir === undefined && sources.data_dir === 'default' && latestRunning()
  if (other)
    console.error(
      `gatehouse: this token is for the instance in ${data_dir}; for the development server at ${other.url} add --data-dir ${other.data_dir}`,
    )
  // The code that opens an instance is loaded only when no development server has issued the token.
  const { issueOffline } = await import('./offline-token.ts')
  return issueOffline(config, file, options)
}

const isRunning = ({ pid }: DevFile): boolean => {
  try {
    return pid !== null && process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Returns the development server that this OS user started last. */
export const latestRunning = (): DevFile | undefined =>
  readdirSync(tmpdir())
    .filter(name => name.startsWith('gatehouse-dev-'))
    .map(name => join(tmpdir(), name))
    .map(path => ({ path, found: statSync(path, { throwIfNoEntry: false }) }))
    .filter(({ found }) => found?.uid === process.getuid?.())
    .sort((a, b) => (b.found?.mtimeMs ?? 0) - (a.found?.mtimeMs ?? 0))
    .map(({ path }) => readDevFile(path))
    .find(file => file && isRunning(file))
