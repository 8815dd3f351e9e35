import { ConfigError } from '#src/config.ts'
import { connectGatehouse } from '#src/testing/controls.ts'
import type { MintOptions } from '#src/testing/types.ts'
import { developmentServer, isRunning, latestRunning } from './development-server.ts'
import { loadServerConfig } from './last-start.ts'
import type { PrintedToken } from './offline-token.ts'
import { print } from './print.ts'
import { mintInputOf, type TokenOptions } from './token-options.ts'

const outputs: Record<string, (made: PrintedToken) => string> = {
  token: ({ token }) => token,
  header: ({ token }) => `Authorization: Bearer ${token}`,
  json: ({ token, expires_in }) =>
    JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in }, null, 2),
}

/**
 * Prints an access token. A development server, running or stopped, can issue any token. A production
 * instance issues only tokens with the permissions of an existing user. It records each of these tokens in
 * the audit log.
 */
export const token = async (options: TokenOptions): Promise<void> => {
  const render = outputs[options.output]
  if (!render) throw new ConfigError(`--output: must be one of ${Object.keys(outputs).join(', ')}.`)
  print(render(await issue(options)))
}

const issue = async (options: TokenOptions): Promise<PrintedToken> => {
  const { config, sources } = loadServerConfig(options)
  const { data_dir } = config
  const { SERVICE_URL: url, SERVICE_DEV_TOKEN: control_token } = process.env
  if (options.dataDir === undefined && url && control_token)
    return connectGatehouse({ url, control_token }).mint(mintInputOf(options) as MintOptions)
  const file = developmentServer(config, options.dataDir !== undefined)
  if (file && isRunning(file))
    return connectGatehouse({ ...file, url: file.local_url }).mint(mintInputOf(options) as MintOptions)
  // True for a token of the instance in the current folder. A development server on a temporary data
  // directory would refuse this token. If such a server runs, a message says how to get a token for it.
  const isHere = !file && sources.data_dir === 'default' && !config.database_url
  const other = isHere && options.dataDir === undefined && latestRunning()
  if (other)
    console.error(
      `gatehouse: this token is for the instance in ${data_dir}; for the development server at ${other.url} add --data-dir ${other.data_dir}`,
    )
  // The code that opens an instance is loaded only when no development server has issued the token.
  const { issueOffline } = await import('./offline-token.ts')
  return issueOffline(config, file, options)
}
