import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostActor, record } from '#src/audit/record.ts'
import { type Config, ConfigError } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { CreateClient } from '#src/directory/clients/schema.ts'
import { type Client, insertClient, readClient, saveClient } from '#src/directory/clients/store.ts'
import { insertOrganization, readOrganization } from '#src/directory/organizations/store.ts'
import { insertBuiltInRoles } from '#src/directory/roles/store.ts'
import { configuredCost, rememberCost } from '#src/directory/users/hash-costs.ts'
import { CreateUser } from '#src/directory/users/schema.ts'
import { createUser } from '#src/directory/users/service.ts'
import { AppError } from '#src/lib/app-error.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret } from '#src/lib/secrets.ts'
import { giveToOwner, sync } from '#src/storage/data-dir.ts'
import { StorageError } from '#src/storage/errors.ts'
import { putSetting } from '#src/storage/settings.ts'
import type { Transaction } from '#src/storage/store.ts'
import { allScopes, KNOWN_SCOPES } from './start-store.ts'

const rememberScopes = (tx: Transaction, now: number): Promise<void> =>
  putSetting(tx, KNOWN_SCOPES, allScopes, now)

/**
 * Creates the missing parts of the instance, and applies the settings to the existing parts.
 *
 * @param known scopes that existed at the last start; undefined until the first start is complete
 * @returns the path of the file with the first admin client's secret, if a secret was generated
 */
export const makeParts = async (base: Core, known: string[] | undefined): Promise<string | undefined> => {
  const { config, store, clock } = base
  await store.write(async tx => {
    await createDefaultOrganization(tx, clock.now())
    await rememberCost(base, tx, configuredCost(base))
  })
  const generated = known || config.admin_client_secret ? undefined : newSecret()
  const admin_client_file = generated && writeClientFile(base, generated)
  await store.write(async tx => {
    await applyAdminClient(base, tx, config.admin_client_secret ?? generated, known ?? [])
    if (known) await rememberScopes(tx, clock.now())
  })
  if (!known) {
    await createFirstAdmin(base)
    await store.write(tx => rememberScopes(tx, clock.now()))
  }
  return admin_client_file
}

const createDefaultOrganization = async (tx: Transaction, now: number): Promise<void> => {
  if (await readOrganization(tx, DEFAULT_ORGANIZATION)) return
  await insertOrganization(tx, {
    id: DEFAULT_ORGANIZATION,
    name: 'Default',
    slug: 'default',
    display_name: 'Gatehouse',
    settings: {},
    created_at: now,
    updated_at: now,
  })
  await insertBuiltInRoles(tx, DEFAULT_ORGANIZATION, now)
}

const adminClient = ({ config, clock }: Core, secret: string): Client => ({
  ...CreateClient.parse({
    client_id: config.admin_client_id,
    name: 'First admin client',
    type: 'confidential',
    kind: 'service',
    grant_types: ['client_credentials'],
    scopes: allScopes,
  }),
  organization_id: DEFAULT_ORGANIZATION,
  token_endpoint_auth_method: 'client_secret_basic',
  secret_hash: hashSecret(secret),
  created_at: clock.now(),
  updated_at: clock.now(),
})

/**
 * Creates the first admin client if `secret` is given. An existing client gets the secret, and the scopes
 * that are new in this version, so that scripts can call the new routes. A client that an administrator
 * deleted is created again only if the settings contain its secret.
 */
const applyAdminClient = async (
  base: Core,
  tx: Transaction,
  secret: string | undefined,
  known: string[],
): Promise<void> => {
  const stored = await readClient(tx, base.config.admin_client_id)
  if (!stored) {
    if (secret) await insertClient(tx, adminClient(base, secret))
    return
  }
  if (stored.organization_id !== DEFAULT_ORGANIZATION || stored.type !== 'confidential')
    throw new ConfigError(
      'admin_client_id: the client with this id is not a confidential client of the default organization; choose another id.',
    )
  const secret_hash = secret ? hashSecret(secret) : stored.secret_hash
  const missing = allScopes.filter(scope => !known.includes(scope) && !stored.scopes.includes(scope))
  const changes = [
    ...(missing.length > 0 ? (['client.updated'] as const) : []),
    ...(secret_hash !== stored.secret_hash ? (['client.secret_regenerated'] as const) : []),
  ]
  if (changes.length === 0) return
  const scopes = [...stored.scopes, ...missing]
  await saveClient(tx, { ...stored, secret_hash, scopes, updated_at: base.clock.now() })
  for (const type of changes)
    await record(base, tx, {
      ...hostActor,
      type,
      target_id: stored.client_id,
      target_type: 'client',
      organization_id: DEFAULT_ORGANIZATION,
      metadata: type === 'client.updated' ? { fields: ['scopes'] } : {},
    })
}

/**
 * Writes the file with the generated secret atomically and syncs it to the disk. This happens before the
 * client is stored, because a crash or a power failure could otherwise lose the secret.
 */
const writeClientFile = ({ config }: Core, client_secret: Secret): string => {
  const file = clientFile(config)
  const content = { client_id: config.admin_client_id, client_secret }
  try {
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
    // An interrupted start may have left this file. `wx` refuses to write through a link. Root would
    // otherwise follow the link out of the data directory.
    rmSync(`${file}.new`, { force: true })
    writeFileSync(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    giveToOwner(`${file}.new`)
    renameSync(`${file}.new`, file)
    sync(config.data_dir)
  } catch (error) {
    throw new StorageError(`${file}: cannot be written (${(error as NodeJS.ErrnoException).code}).`)
  }
  return file
}

const clientFile = ({ data_dir }: Config): string => join(data_dir, 'admin-client.json')

const adminUser = (config: Config) =>
  config.admin_username === undefined
    ? undefined
    : CreateUser.safeParse({
        username: config.admin_username,
        email: config.admin_email,
        password: config.admin_password,
        first_name: '',
        last_name: '',
        email_verified: true,
        roles: ['admin'],
      })

/**
 * Checks the id of the first admin client and the fields of the first administrator against the schemas of
 * the admin API.
 *
 * @throws ConfigError for a value that the admin API refuses
 */
export const checkChosenNames = (config: Config): void => {
  const client = CreateClient.shape.client_id.safeParse(config.admin_client_id)
  if (!client.success) throw new ConfigError(`admin_client_id: ${client.error.issues[0]?.message}`)
  const [issue] = adminUser(config)?.error?.issues ?? []
  if (issue) throw new ConfigError(`admin_${String(issue.path[0])}: ${issue.message}`)
}

/**
 * Creates the administrator that the settings name. This function runs only at the first start, because a
 * restart must not bring back a deleted administrator or an old password.
 *
 * @throws ConfigError for a password that the rules refuse
 */
const createFirstAdmin = async (base: Core): Promise<void> => {
  const user = adminUser(base.config)?.data
  if (!user) return
  try {
    await createUser(base, user, hostActor)
  } catch (error) {
    // A conflict means that an interrupted start has already created the user.
    if (!(error instanceof AppError) || error.status >= 500) throw error
    if (error.code !== 'conflict')
      throw new ConfigError(`admin_password: ${error.details?.map(detail => detail.message).join(' ')}`)
  }
}
