import { type Config, ConfigError } from '#src/config.ts'
import type { Core, Issuer } from '#src/context.ts'
import type { DevFile } from '#src/dev/dev-file.ts'
import type { Mint, MintInput } from '#src/dev/mint-schema.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { type Organization, readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { silentLog } from '#src/lib/log.ts'
import { issuePersonalToken } from '#src/oauth/personal-token.ts'
import { openKeys } from '#src/tokens/keys.ts'
import { withDevelopment } from './development-server.ts'
import { openExisting } from './instance.ts'
import { mintInputOf, secondsOf, type TokenOptions } from './token-options.ts'

/** A token and its lifetime in seconds. */
export interface PrintedToken {
  token: string
  expires_in: number
}

/**
 * Issues a token without a server. `file` is set if the data directory belongs to a development server, for
 * which any token can be issued. Without `file` the instance is in production. A production instance issues
 * tokens only to existing users; for each token it records an event and stores a session, which can be
 * revoked.
 */
export const issueOffline = async (
  config: Config,
  file: DevFile | undefined,
  options: TokenOptions,
): Promise<PrintedToken> => {
  const context = await openOffline(file ? withDevelopment(config, file) : config)
  try {
    return await (file ? mintOffline(context, file, options) : issueReal(context, options))
  } finally {
    await context.store.close()
  }
}

const openOffline = async (config: Config): Promise<Issuer> => {
  const core = await openExisting(config, silentLog)
  return { ...core, keys: await openKeys(core, true) }
}

const client_info = { ip_address: '', user_agent: 'gatehouse token' }

const mintOffline = async (
  context: Issuer,
  { client_id }: DevFile,
  options: TokenOptions,
): Promise<PrintedToken> => {
  const { mint } = await import('#src/dev/mint.ts')
  const wanted = await validated(mintInputOf(options))
  return mint(context, wanted, { client_id, client_info })
}

/** Matches a plain name, which the schema accepts as organization, user and client. */
const PLAIN_NAME = /^[\w.@+-]{1,64}$/

/**
 * Validates the options. The schema is loaded only when an option is not a plain name, because loading zod
 * takes as much CPU time as starting the runtime.
 */
const validated = async ({ organization = 'default', claims = {}, ...input }: MintInput): Promise<Mint> => {
  const { user, client_id, ...others } = input
  const names = [organization, user, client_id].filter(name => name !== undefined)
  const isPlain =
    names.every(name => PLAIN_NAME.test(name)) && Object.keys({ ...claims, ...others }).length === 0
  if (isPlain) return { organization, claims: {}, kind: 'access_token', user, client_id }
  const { Mint } = await import('#src/dev/mint-schema.ts')
  const wanted = Mint.safeParse({ organization, claims, ...input })
  if (wanted.success) return wanted.data
  throw new ConfigError(
    wanted.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'),
  )
}

/**
 * Issues a token of a production instance. Its claims come from stored data only, so the token has no more
 * rights than a login would give.
 */
const issueReal = async (context: Issuer, options: TokenOptions): Promise<PrintedToken> => {
  for (const name of ['role', 'claim', 'bad'] as const)
    if (options[name]) throw new ConfigError(`--${name}: only in development.`)
  const { user, client, home } = await subjectOf(context, options)
  const scopes = options.scope?.split(' ').filter(Boolean) ?? client.scopes
  const missing = scopes.filter(scope => !client.scopes.includes(scope))
  if (missing.length > 0)
    throw new ConfigError(`--scope: the client ${client.client_id} may not request ${missing.join(', ')}.`)
  const limits = [
    ['client', client.access_token_ttl],
    ['organization', (settingsOf(home).session_ttl ?? Number.POSITIVE_INFINITY) / SECOND],
  ] as const
  const lifetime = secondsOf(options.expiresIn) ?? Math.min(...limits.map(([, seconds]) => seconds))
  for (const [name, seconds] of limits)
    if (lifetime > seconds)
      throw new ConfigError(
        `--expires-in: the ${name} allows at most ${seconds / (MINUTE / SECOND)} minutes.`,
      )
  if (!(await context.store.read(q => isAdmitted(q, client, user.id))))
    throw new ConfigError(`--user: the client ${client.client_id} does not admit the user.`)
  return issuePersonalToken(context, {
    user,
    client,
    scopes,
    lifetime,
    client_info,
    grant_type: 'command_line',
  })
}

const subjectOf = async (
  core: Core,
  { user: name, client: client_id, organization: slug }: TokenOptions,
): Promise<{ user: UserRow; client: Client; home: Organization }> => {
  if (name === undefined)
    throw new ConfigError('--user: missing; name a user by user name, e-mail address or id.')
  if (client_id === undefined)
    throw new ConfigError('--client: missing; name the client to which the token is issued.')
  const { store } = core
  const home = await store.read(q => readOrganizationBySlug(q, slug))
  if (!home) throw new ConfigError(`--organization: no organization has the slug ${slug}.`)
  const user = await store.read(
    async q => (await findUser(q, home.id, name)) ?? findUserForLogin(q, home.id, name),
  )
  if (!user?.enabled)
    throw new ConfigError(
      `--user: ${user ? 'the user is disabled' : `no such user in the organization ${slug}`}.`,
    )
  const client = await findClient(core, client_id)
  if (client?.organization_id !== home.id)
    throw new ConfigError(`--client: no such client in the organization ${slug}.`)
  return { user, client, home }
}
