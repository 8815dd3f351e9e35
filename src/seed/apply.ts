import type { Core } from '#src/context.ts'
import { settingsFrom } from '#src/directory/identity-providers/metadata.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { readOrganization, readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { checkPolicy, hashPassword } from '#src/directory/users/password.ts'
import { AppError, conflict, invalid, throwProblems } from '#src/lib/app-error.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import { DEFAULT_ORGANIZATION, NO_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { StorageError } from '#src/storage/errors.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { seedKindOf } from './kinds.ts'
import { prune } from './prune.ts'
import { finishPurges } from './purges.ts'
import { type Entry, entryName, type Mistake, type ReadSeed, SeedError, uniqueName } from './read.ts'
import { usersOf } from './rehearsed-users.ts'
import { type SeedOf, type SeedSection, seedSections } from './schema.ts'
import { isShort } from './size.ts'
import { type Change, entryKey, referredBy, type Step } from './steps.ts'
import { type SeedRun, withTransaction } from './transaction.ts'

/** Options of `gatehouse apply` and `gatehouse plan`. */
export interface SeedOptions {
  /** Deletes stored entries that the file does not name (`prune`). */
  prune?: boolean
  /** Returns the changes without making them (`plan`). */
  dry_run?: boolean
  /** Accepts passwords that the policy of the organization refuses. Set in development mode only. */
  any_password?: boolean
  /**
   * Does not load `metadata_url` again for stored SAML providers. A start must not depend on other servers
   * and must not replace pinned certificates.
   */
  keep_metadata?: boolean
}

/**
 * Maximum changes in one small transaction. During the transaction, other writes have to wait (SQLite) or can
 * conflict with it (PostgreSQL).
 */
const BATCH = { sqlite: 5, postgres: 10 }

/**
 * Makes the stored objects match the file, through the services of the admin API. Only `prune` deletes
 * objects that the file does not name. Without `prune`, a file of up to 25 entries is applied in one
 * transaction. Any other run is first rehearsed and then applied in small transactions. If a concurrent
 * change makes a transaction fail, the earlier transactions stay committed, and the error gives the number of
 * their changes.
 *
 * @throws SeedError with the mistakes of the file; an entry that refers to a section or entry with mistakes
 *   is not checked. StorageError when another server has been applying a seed for a minute
 */
export const applySeed = async (base: Core, seed: ReadSeed, options: SeedOptions = {}): Promise<Change[]> => {
  const prepared = await prepare(base, seed, options)
  // Several servers can start with the same file. The second server waits for the first, and then finds no
  // changes to make.
  const changes = await base.store.exclusively('seed', () => applyPrepared(base, prepared, options), 'wait')
  if (!changes) throw new StorageError('Another server is applying a seed: try again.', 75)
  return changes
}

const applyPrepared = async (base: Core, prepared: Prepared, options: SeedOptions): Promise<Change[]> => {
  const { store } = base
  if (!options.dry_run) await finishPurges(base, prepared.seed)
  const whole = (tx: Transaction) =>
    runSteps(base, tx, prepared, work => stepsOf(work, prepared.seed, options))
  const { dry_run, prune } = options
  if (!prune && !dry_run && (await store.read(q => isShort(q, prepared.seed))))
    return finish(base, await store.write(whole))
  const rehearsed = await store.rehearse(whole, usersOf(prepared.seed, options.prune))
  if (options.dry_run) return changesOf(rehearsed)
  const changes: Change[] = []
  const batch = BATCH[store.engine]
  let waiting = rehearsed.steps.map(({ step }) => step)
  while (waiting.length > 0) {
    const steps = waiting.slice(0, batch)
    await store.drained()
    const done = await store.write(tx => runSteps(base, tx, prepared, () => steps, changes.length))
    waiting.splice(0, done.ran)
    if (done.parts.length > 0) waiting = [...done.parts, ...waiting]
    changes.push(...(await finish(base, done)))
  }
  return changes
}

/**
 * Number of passwords that are hashed at once. On two cores they take half of an organization's seats in the
 * hash queue.
 */
const HASHES = 32

interface AppliedStep {
  step: Step
  change: Change
}

/** The changes of a transaction, and the work that needs many writes and must follow the commit. */
interface Done {
  steps: AppliedStep[]
  /** Number of steps that were run. A step with further parts is the last one. */
  ran: number
  /** Further parts of the last step, which the next transactions make before other steps. */
  parts: Step[]
  rest: ((context: Core) => Promise<unknown>)[]
}

const changesOf = ({ steps }: Done): Change[] => steps.map(({ change }) => change)

/** Does the work that follows the commit. A failure does not end it, because some work is never repeated. */
const finish = async (base: Core, done: Done): Promise<Change[]> => {
  const failures: unknown[] = []
  for (const work of done.rest) await work(base).catch(error => failures.push(error))
  if (failures.length > 0) throw failures[0]
  return changesOf(done)
}

interface Prepared {
  seed: ReadSeed
  hashes: Map<SeedOf<'users'>, string>
  /** Names of the users in the file. A set for each transaction would cost the square of their number. */
  names: Set<string>
  mistakes: Mistake[]
}

/**
 * Does the slow work before the transaction: hashes new passwords and reads the metadata of SAML providers.
 */
const prepare = async (
  base: Core,
  seed: ReadSeed,
  { dry_run, keep_metadata }: SeedOptions,
): Promise<Prepared> => {
  const hashes: Prepared['hashes'] = new Map()
  const mistakes = [...seed.mistakes]
  const isRefused = mistakes.length > 0
  const hash = async ({ value }: Entry<'users'>): Promise<void> => {
    const { organization, password } = value
    if (!password || dry_run || isRefused || (await base.store.read(q => isKnown(q, 'users', value)))) return
    hashes.set(value, await hashPassword(base, password, { work: 'change', organization }))
  }
  const { users } = seed.entries
  for (let at = 0; at < users.length; at += HASHES) await Promise.all(users.slice(at, at + HASHES).map(hash))
  const withMetadata = async (entry: Entry<'identity_providers'>): Promise<typeof entry> => {
    const { value, given, path } = entry
    if (value.type !== 'saml' || !(value.metadata_url || value.metadata_xml)) return entry
    const home = await base.store.read(q => readOrganizationBySlug(q, value.organization))
    // A new organization has no id yet. The fetch needs only the slug, because `outbound_allow` lists slugs.
    const organization = { id: home?.id ?? NO_ORGANIZATION, slug: value.organization }
    const isKept =
      keep_metadata &&
      value.metadata_url &&
      (await base.store.read(q => isKnown(q, 'identity_providers', value)))
    const { found, problems } = await settingsFrom(base, organization, isKept ? {} : value)
    mistakes.push(...problems.map(({ field, message }) => ({ path: `${path}.${field}`, message })))
    const { metadata_url: _, metadata_xml: __, ...rest } = value
    const names = [...given].filter(name => !name.startsWith('metadata_'))
    return { path, value: { ...rest, ...found }, given: new Set([...names, ...Object.keys(found)]) }
  }
  const identity_providers: Entry<'identity_providers'>[] = []
  // The metadata is read for one provider after the other. Many providers at once would fill the
  // organization's share of the XML reader's queue.
  for (const entry of seed.entries.identity_providers) identity_providers.push(await withMetadata(entry))
  const names = new Set(users.map(({ value }) => uniqueName('users', value)))
  return { seed: { ...seed, entries: { ...seed.entries, identity_providers } }, hashes, names, mistakes }
}

const isKnown = async <S extends 'users' | 'identity_providers'>(
  q: Queries,
  section: S,
  value: SeedOf<S>,
): Promise<boolean> => {
  const kind = seedKindOf(section)
  const home = await readOrganizationBySlug(q, value.organization)
  return (await kind.find(q, value, home?.id ?? NO_ORGANIZATION)) !== undefined
}

/**
 * Runs all steps, and then throws one error for all mistakes. `applied` counts the changes of earlier
 * transactions. It is undefined when one transaction has all changes.
 */
const runSteps = async (
  base: Core,
  tx: Transaction,
  { seed, hashes, names, mistakes }: Prepared,
  stepsFor: (work: SeedRun) => Iterable<Step> | AsyncIterable<Step>,
  applied?: number,
): Promise<Done> => {
  const rest: Done['rest'] = []
  const parts: Step[] = []
  let path = ''
  let ran = 0
  const work: SeedRun = {
    context: {
      ...withTransaction(base, tx),
      postpone: (work, isRepeated) => (isRepeated ? rest.push(work) : rest.unshift(work)),
    },
    tx,
    hashOf: user => hashes.get(user) ?? user.password_hash ?? null,
    refused: new Set(seed.mistakes.map(({ path }) => path.replace(/\[.*/, ''))),
    isNamed: (organization, username) => names.has(foldIdentifier(`${organization}/${username}`)),
    ...(applied !== undefined && { later: run => void parts.push({ path, run }) }),
  }
  const steps: AppliedStep[] = []
  const wrong = [...mistakes]
  for await (const step of stepsFor(work)) {
    path = step.path
    ran++
    try {
      const change = await tx.nested(() => step.run(work))
      if (change) steps.push({ step, change })
    } catch (error) {
      if (!(error instanceof AppError) || error.status >= 500) throw error
      wrong.push(...mistakesOf(path, error))
      if (step.key) work.refused.add(step.key)
    }
    if (parts.length > 0) break
  }
  if (wrong.length > 0) throw new SeedError(seed.source, wrong, applied ?? 0)
  return { steps, ran, parts, rest }
}

/**
 * Prunes first, so that new entries can take the freed names. An entry that refers to a refused section or
 * entry is skipped, because its reference could be reported as a further mistake.
 */
async function* stepsOf(work: SeedRun, seed: ReadSeed, options: SeedOptions): AsyncGenerator<Step> {
  if (options.dry_run) await finishPurges(work.context, seed)
  const { refused } = work
  if (options.prune && refused.size === 0) yield* prune(work, seed)
  for (const section of seedSections)
    for (const entry of seed.entries[section]) {
      const key = entryKey(section, entry.value)
      if (referredBy(section, entry.value).some(other => refused.has(other))) refused.add(key)
      else yield { path: entry.path, key, run: inner => applyEntry(inner, section, entry, options) }
    }
}

const mistakesOf = (path: string, { message, details }: AppError): Mistake[] =>
  details?.map(({ field, message }) => ({
    path: field ? `${path}.${field.replace(/^organization_id$/, 'organization')}` : path,
    message,
  })) ?? [{ path, message }]

/** Creates or changes an entry and returns the change. Returns undefined when the entry is up to date. */
const applyEntry = async <S extends SeedSection>(
  work: SeedRun,
  section: S,
  { value, given }: Entry<S>,
  options: SeedOptions,
): Promise<Change | undefined> => {
  const kind = seedKindOf(section)
  const name = entryName(section, value)
  const organization_id = await homeOf(work.tx, value)
  const row = await kind.find(work.tx, value, organization_id)
  if (!row) {
    if (section === 'users' && !options.any_password)
      await checkPassword(work.tx, value as SeedOf<'users'>, organization_id)
    await kind.create(work, value, organization_id)
    return { action: 'create', section, name }
  }
  // Roles, sessions and events belong to one organization, so an object cannot move to another organization.
  if (
    'organization' in value &&
    given.has('organization') &&
    Reflect.get(row, 'organization_id') !== organization_id
  )
    throw conflict(
      'The entry belongs to another organization. The organization of an entry cannot be changed.',
    )
  const before = await kind.show(work, row)
  const skipped = ['organization', 'id']
  const change = Object.fromEntries(
    Object.entries(value).filter(([key]) => given.has(key) && !skipped.includes(key)),
  )
  await kind.update(work, row, change, value)
  const after = await kind.show(work, (await kind.find(work.tx, value, organization_id)) ?? row)
  const fields = Object.keys(after).filter(
    key => key !== 'updated_at' && !Bun.deepEquals(before[key], after[key]),
  )
  return fields.length > 0 ? { action: 'update', section, name, fields } : undefined
}

const homeOf = async (tx: Transaction, value: SeedOf<SeedSection>): Promise<OrganizationId> => {
  if (!('organization' in value)) return DEFAULT_ORGANIZATION
  const home = await readOrganizationBySlug(tx, value.organization)
  if (home) return home.id
  throw invalid({
    field: 'organization',
    code: 'unknown_organization',
    message: `No organization has the slug ${value.organization}.`,
  })
}

const checkPassword = async (
  tx: Transaction,
  { password }: SeedOf<'users'>,
  id: OrganizationId,
): Promise<void> => {
  const organization = await readOrganization(tx, id)
  if (organization && password) throwProblems(checkPolicy(settingsOf(organization).password_policy, password))
}
