import { type Config, ConfigError } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { countAdmins } from '#src/directory/roles/store.ts'
import { configuredCost, readCosts } from '#src/directory/users/hash-costs.ts'
import { CONSOLE_CLIENT, DEFAULT_ADMIN_CLIENT, DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { StorageError } from '#src/storage/errors.ts'
import { getSetting } from '#src/storage/settings.ts'
import type { Queries } from '#src/storage/store.ts'
import { allScopes, findSecretHash, hasOrganization, KNOWN_SCOPES } from './start-store.ts'

/** Result of `createInstance`. The caller reports it to the operator. */
export interface FirstStart {
  /**
   * Path of the file with the generated secret of the first admin client. Absent when this start wrote no
   * file.
   */
  admin_client_file?: string
  /** True when no administrator exists and thus a set-up link is needed. */
  needs_admin: boolean
}

/**
 * Creates the parts that every instance has: the default organization, its built-in roles and the first admin
 * client. Also creates the first admin user if the settings name one. Later starts apply the client's secret
 * from the settings and add new scopes. An interrupted start continues where it stopped. Only one copy of the
 * server runs this function at a time.
 *
 * @throws ConfigError for settings that are invalid or conflict with stored clients
 * @throws StorageError when another server has been setting up the instance for a minute, or when the file
 * with the secret cannot be written
 */
export const createInstance = async (base: Core): Promise<FirstStart> => {
  await checkNames(base.config)
  const first = await base.store.exclusively('first start', () => setUp(base), 'wait')
  if (!first) throw new StorageError('Another server is setting up this instance: try again.', 75)
  return first
}

const setUp = async (base: Core): Promise<FirstStart> => {
  const { store } = base
  await checkConsole(base)
  const known = await store.read(q => getSetting<string[]>(q, KNOWN_SCOPES))
  const isDone = known !== undefined && (await store.read(q => isComplete(base, q, known)))
  // A later start with the same settings does not load the code that makes the parts.
  const admin_client_file = isDone
    ? undefined
    : await (await import('./first-objects.ts')).makeParts(base, known)
  return { ...(admin_client_file && { admin_client_file }), needs_admin: await needsAdmin(base) }
}

/** True when the instance has all parts as the settings describe them. */
const isComplete = async ({ config }: Core, q: Queries, known: string[]): Promise<boolean> => {
  const { admin_client_id, admin_client_secret: secret } = config
  const admin = await findSecretHash(q, admin_client_id, DEFAULT_ORGANIZATION)
  return (
    (secret === undefined ? admin !== null : admin === hashSecret(secret)) &&
    allScopes.every(scope => known.includes(scope)) &&
    (await readCosts(q)).includes(configuredCost({ config })) &&
    (await hasOrganization(q, DEFAULT_ORGANIZATION))
  )
}

/**
 * Checks that no stored client has the id of the console's client, because the built-in client would hide the
 * stored client. Does nothing when the console is off.
 *
 * @throws ConfigError when a stored client has this id
 */
const checkConsole = async ({ config, store }: Core): Promise<void> => {
  if (config.console === 'off') return
  if ((await store.read(q => findSecretHash(q, CONSOLE_CLIENT))) !== undefined)
    throw new ConfigError(
      `console: a stored client has the id ${CONSOLE_CLIENT}, which the console needs. Set GATEHOUSE_CONSOLE=off. Or start the former version of Gatehouse and delete the client there, because this version does not delete a client with that id.`,
    )
}

/** True when no user has the role `admin` of the default organization, directly or through a group. */
export const needsAdmin = async ({ store }: Core): Promise<boolean> => (await store.read(countAdmins)) === 0

/**
 * Checks the settings of the first admin client and the first administrator against the rules of the admin
 * API.
 *
 * @throws ConfigError for a value that the admin API refuses
 */
export const checkNames = async (config: Config): Promise<void> => {
  const { admin_client_id, admin_username } = config
  // The schemas are loaded only when the operator has set `admin_client_id` or `admin_username`.
  if (admin_client_id !== DEFAULT_ADMIN_CLIENT || admin_username !== undefined)
    (await import('./first-objects.ts')).checkChosenNames(config)
}
