import { existsSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { type Config, ConfigError } from '#src/config.ts'
import type { Core, Issuer } from '#src/context.ts'
import { type DevFile, readDevFile } from '#src/dev/dev-file.ts'
import { Mint, type MintInput, mint } from '#src/dev/mint.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { MINUTE, parseDuration, SECOND } from '#src/lib/duration.ts'
import { issuePersonalToken } from '#src/oauth/personal-token.ts'
import { controlsOf } from '#src/testing/controls.ts'
import type { MintOptions } from '#src/testing/types.ts'
import { openKeys } from '#src/tokens/keys.ts'
import { openExisting } from './instance.ts'
import { loadServerConfig } from './last-start.ts'

/** Options of `gatehouse token`. */
export interface TokenOptions {
  config?: string
  dataDir?: string
  user?: string
  organization: string
  client?: string
  scope?: string
  role?: string[]
  claim?: string[]
  bad?: string
  expiresIn?: string
  output: string
}

interface Issued {
  token: string
  expires_in: number
}

const outputs: Record<string, (made: Issued) => string> = {
  token: ({ token }) => token,
  header: ({ token }) => `Authorization: Bearer ${token}`,
  json: ({ token, expires_in }) =>
    JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in }, null, 2),
}

/**
 * Prints an access token. A development server or its data directory issues any token; production issues one
 * for an existing user with that user's permissions, and records it in the audit log.
 */
export const token = async (options: TokenOptions): Promise<void> => {
  const render = outputs[options.output]
  if (!render) throw new ConfigError(`--output: not one of ${Object.keys(outputs).join(', ')}.`)
  console.log(render(await issue(options)))
}

const issue = async (options: TokenOptions): Promise<Issued> => {
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
  // A development server may run while the current folder holds an instance. The token of the instance would
  // fail at that server much later, so the message names the other directory.
  const other = !file && options.dataDir === undefined && sources.data_dir === 'default' && latestRunning()
  if (other)
    console.error(
      `gatehouse: this is for the instance in ${data_dir}; for the development server at ${other.url} add --data-dir ${other.data_dir}`,
    )
  const context = await openOffline({ ...config, ...(file && { url: file.url, data_dir: file.data_dir }) })
  try {
    return await (file ? mintOffline(context, file, options) : issueReal(context, options))
  } finally {
    await context.store.close()
  }
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

const openOffline = async (config: Config): Promise<Issuer> => {
  const core = await openExisting(config, pino({ level: 'silent' }))
  return { ...core, keys: await openKeys(core, true) }
}

const secondsOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const [, seconds] = /^([1-9]\d{0,8})s?$/.exec(text) ?? []
  const ms = seconds === undefined ? parseDuration(text) : Number(seconds) * SECOND
  if (ms === undefined)
    throw new ConfigError('--expires-in: not a whole number with s, m, h, d or w, such as 1h.')
  return ms / SECOND
}

/** Parses `name=value`; a value in JSON is parsed. */
const claimOf = (text: string): [string, unknown] => {
  const at = text.indexOf('=')
  if (at < 1) throw new ConfigError('--claim: not a name=value, such as --claim tier=gold.')
  const value = text.slice(at + 1)
  try {
    return [text.slice(0, at), JSON.parse(value)]
  } catch {
    return [text.slice(0, at), value]
  }
}

const mintInputOf = (options: TokenOptions): MintInput => {
  const { user, organization, client, scope, role, claim, bad, expiresIn } = options
  const expires_in = secondsOf(expiresIn)
  return {
    organization,
    claims: Object.fromEntries((claim ?? []).map(claimOf)) as MintInput['claims'] & object,
    ...(user !== undefined && { user }),
    ...(client !== undefined && { client_id: client }),
    ...(scope !== undefined && { scope }),
    ...(role && { roles: role }),
    ...(bad !== undefined && { bad: bad as NonNullable<MintInput['bad']> }),
    ...(expires_in !== undefined && { expires_in }),
  }
}

const client_info = { ip_address: '', user_agent: 'gatehouse token' }

const mintOffline = (context: Issuer, { client_id }: DevFile, options: TokenOptions): Promise<Issued> => {
  const wanted = Mint.safeParse(mintInputOf(options))
  if (wanted.success) return mint(context, wanted.data, { client_id, client_info })
  throw new ConfigError(
    wanted.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'),
  )
}

/** Issues a token of a production instance. Its claims come from stored data only. */
const issueReal = async (context: Issuer, options: TokenOptions): Promise<Issued> => {
  for (const name of ['role', 'claim', 'bad'] as const)
    if (options[name]) throw new ConfigError(`--${name}: only in development.`)
  const { user, client } = await subjectOf(context, options)
  const scopes = options.scope?.split(' ').filter(Boolean) ?? client.scopes
  const missing = scopes.filter(scope => !client.scopes.includes(scope))
  if (missing.length > 0)
    throw new ConfigError(`--scope: the client ${client.client_id} has no ${missing.join(', ')}.`)
  const lifetime = secondsOf(options.expiresIn) ?? client.access_token_ttl
  if (lifetime > client.access_token_ttl)
    throw new ConfigError(
      `--expires-in: at most the client's ${client.access_token_ttl / (MINUTE / SECOND)} minutes.`,
    )
  const { token, expires_in } = await issuePersonalToken(context, {
    user,
    client,
    scopes,
    lifetime,
    client_info,
    grant_type: 'command_line',
  })
  return { token, expires_in }
}

const subjectOf = async (
  core: Core,
  { user: name, client: client_id, organization: slug }: TokenOptions,
): Promise<{ user: UserRow; client: Client }> => {
  if (name === undefined)
    throw new ConfigError('--user: missing; name a user by user name, e-mail address or id.')
  if (client_id === undefined)
    throw new ConfigError('--client: missing; name the client to which the token is issued.')
  const { store } = core
  const home = await store.read(q => readOrganizationBySlug(q, slug))
  if (!home) throw new ConfigError(`--organization: no organization has the slug ${slug}.`)
  const user = await store.read(q =>
    name.startsWith('usr_') ? findUser(q, home.id, name) : findUserForLogin(q, home.id, name),
  )
  if (!user?.enabled)
    throw new ConfigError(
      `--user: ${user ? 'the user is disabled' : `no such user in the organization ${slug}`}.`,
    )
  const client = await findClient(core, client_id)
  if (client?.organization_id !== home.id)
    throw new ConfigError(`--client: no such client in the organization ${slug}.`)
  return { user, client }
}
