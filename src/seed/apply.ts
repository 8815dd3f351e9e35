import type { Context, Ports } from '#src/context.ts'
import { refuse } from '#src/directory/access.ts'
import { settingsFrom } from '#src/directory/identity-providers/metadata.ts'
import { readOrganization, readOrganizationBySlug, settingsOf } from '#src/directory/organizations/store.ts'
import { checkPolicy, hashPassword } from '#src/directory/users/password.ts'
import { AppError, conflict, invalid } from '#src/lib/app-error.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import { DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { StorageError } from '#src/storage/errors.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { type Kind, kinds, type Work } from './kinds.ts'
import { type Entry, type Mistake, nameOf, type ReadSeed, SeedError } from './read.ts'
import { type Section, type SeedOf, sections } from './schema.ts'
import { allClients, allGroups, allOrganizations, allProviders, allRoles, allUsers } from './store.ts'

export interface Change {
  action: 'create' | 'update' | 'delete'
  section: Section
  name: string
  /** Of an update: what becomes another. */
  fields?: string[]
}

export interface SeedOptions {
  /** Deletes what the server has and the file has not, in the sections that the file has. */
  prune?: boolean
  /** Says what would change, and changes nothing. */
  dry_run?: boolean
  /** Development: passwords need not fit the policy of their organization. */
  any_password?: boolean
}

type Base = Omit<Context, 'ports'>

/**
 * Changes in one transaction on PostgreSQL: a long one keeps the others from committing, or they keep it. SQLite has one
 * writer anyway, which is quick.
 */
const BATCH = 25

/**
 * Makes the instance what the file says, through the services of the admin API. Throws a SeedError with every mistake of the
 * file: nothing has happened then. On SQLite all is one transaction. On PostgreSQL it is rehearsed first, and what changes
 * something then goes in transactions of 25: when others have changed the instance meanwhile so that one is refused, those
 * before it stay, which the error says. A plan is the rehearsal alone.
 */
export const applySeed = async (base: Base, seed: ReadSeed, options: SeedOptions = {}): Promise<Change[]> => {
  const prepared = await prepare(base, seed, options)
  // Copies that start with one file: the second finds it done.
  const changes = await base.store.exclusively('seed', () => applyPrepared(base, prepared, options), 'wait')
  if (!changes) throw new StorageError('Another copy of the server applies a seed: try again.', 75)
  return changes
}

const applyPrepared = async (base: Base, prepared: Prepared, options: SeedOptions): Promise<Change[]> => {
  const { store } = base
  const whole = (tx: Transaction) =>
    workOff(base, tx, prepared, work => stepsOf(work, prepared.seed, options))
  if (options.dry_run) return changesOf(await store.rehearse(whole))
  if (store.engine === 'sqlite') return changesOf(await store.write(whole))
  const rehearsed = await store.rehearse(whole)
  const changes: Change[] = []
  for (let at = 0; at < rehearsed.length; at += BATCH) {
    const steps = rehearsed.slice(at, at + BATCH).map(({ step }) => step)
    const done = await store.write(tx => workOff(base, tx, prepared, () => steps, changes.length))
    changes.push(...changesOf(done))
  }
  return changes
}

/** One thing of the file, or one that it has not and that is pruned. */
interface Step {
  path: string
  /** What it has changed, if anything. */
  run(work: Work): Promise<Change | undefined>
}

interface Done {
  step: Step
  change: Change
}

const changesOf = (done: Done[]): Change[] => done.map(({ change }) => change)

interface Prepared {
  seed: ReadSeed
  hashes: Map<SeedOf<'users'>, string>
  mistakes: Mistake[]
}

const NO_ORGANIZATION: OrganizationId = 'org_'

/** What takes time and may not hold the transaction: hashes of new users' passwords, documents of providers. */
const prepare = async (base: Base, seed: ReadSeed, { dry_run }: SeedOptions): Promise<Prepared> => {
  const hashes: Prepared['hashes'] = new Map()
  const mistakes: Mistake[] = []
  for (const { value } of seed.entries.users) {
    if (!value.password || dry_run) continue
    if (!(await base.store.read(q => isKnown(q, value))))
      hashes.set(
        value,
        await hashPassword(base, value.password, { work: 'change', organization: value.organization }),
      )
  }
  const withMetadata = async (entry: Entry<'identity_providers'>): Promise<typeof entry> => {
    const { value, given, path } = entry
    if (value.type !== 'saml' || !(value.metadata_url || value.metadata_xml)) return entry
    const home = await base.store.read(q => readOrganizationBySlug(q, value.organization))
    // The file may make the organization: entries of `outbound_allow` for a tenant name its slug.
    const organization = { id: home?.id ?? NO_ORGANIZATION, slug: value.organization }
    const { found, problems } = await settingsFrom(base, organization, value)
    mistakes.push(...problems.map(({ field, message }) => ({ path: `${path}.${field}`, message })))
    const { metadata_url: _, metadata_xml: __, ...rest } = value
    const names = [...given].filter(name => !name.startsWith('metadata_'))
    return { path, value: { ...rest, ...found }, given: new Set([...names, ...Object.keys(found)]) }
  }
  const identity_providers: Entry<'identity_providers'>[] = []
  // One after the other: a seed with many providers would fill an organization's share of the XML reader's queue.
  for (const entry of seed.entries.identity_providers) identity_providers.push(await withMetadata(entry))
  return { seed: { ...seed, entries: { ...seed.entries, identity_providers } }, hashes, mistakes }
}

const isKnown = async (q: Queries, user: SeedOf<'users'>): Promise<boolean> => {
  const home = await readOrganizationBySlug(q, user.organization)
  return (await kinds.users.find(q, user, home?.id ?? NO_ORGANIZATION)) !== undefined
}

/** The same context inside an open transaction: what the services write belongs to it. */
const inside = (base: Base, tx: Transaction): Context => ({
  ...base,
  ports: {} as Ports,
  store: { ...base.store, read: body => body(tx), write: body => body(tx), onChange: () => {} },
})

/** `applied`: how many changes were committed before. */
const workOff = async (
  base: Base,
  tx: Transaction,
  { seed, hashes, mistakes }: Prepared,
  stepsFor: (work: Work) => Iterable<Step> | AsyncIterable<Step>,
  applied = 0,
): Promise<Done[]> => {
  const names = new Set(seed.entries.users.map(({ value }) => foldIdentifier(nameOf.users(value))))
  const work: Work = {
    context: inside(base, tx),
    tx,
    hashOf: user => hashes.get(user) ?? user.password_hash ?? null,
    isNamed: (organization, username) => names.has(foldIdentifier(`${organization}/${username}`)),
  }
  const done: Done[] = []
  const wrong = [...mistakes]
  for await (const step of stepsFor(work))
    try {
      const change = await tx.nested(() => step.run(work))
      if (change) done.push({ step, change })
    } catch (error) {
      if (!(error instanceof AppError) || error.status >= 500) throw error
      wrong.push(...mistakesOf(step.path, error))
    }
  if (wrong.length > 0) throw new SeedError(seed.source, wrong, applied)
  return done
}

/** What is pruned goes before anything is made: its names are free then. */
async function* stepsOf(work: Work, seed: ReadSeed, options: SeedOptions): AsyncGenerator<Step> {
  if (options.prune) yield* prune(work, seed)
  for (const section of sections)
    for (const entry of seed.entries[section])
      yield { path: entry.path, run: inner => settle(inner, section, entry, options) }
}

const mistakesOf = (path: string, { message, details }: AppError): Mistake[] =>
  details?.map(({ field, message }) => ({
    path: field ? `${path}.${field.replace(/^organization_id$/, 'organization')}` : path,
    message,
  })) ?? [{ path, message }]

/** One entry of the file: created, changed, or left as it is. */
const settle = async <S extends Section>(
  work: Work,
  section: S,
  { value, given }: Entry<S>,
  options: SeedOptions,
): Promise<Change | undefined> => {
  const kind = kinds[section] as unknown as Kind<S, { id?: string }>
  const name = (nameOf[section] as (value: SeedOf<S>) => string)(value)
  const organization_id = await homeOf(work.tx, value)
  const row = await kind.find(work.tx, value, organization_id)
  if (!row) {
    if (section === 'users' && !options.any_password)
      await checkPassword(work.tx, value as SeedOf<'users'>, organization_id)
    await kind.create(work, value, organization_id)
    return { action: 'create', section, name }
  }
  if (
    'organization' in value &&
    given.has('organization') &&
    Reflect.get(row, 'organization_id') !== organization_id
  )
    throw conflict('It belongs to another organization, which cannot be changed.')
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

const homeOf = async (tx: Transaction, value: SeedOf<Section>): Promise<OrganizationId> => {
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
  if (organization && password) refuse(checkPolicy(settingsOf(organization).password_policy, password))
}

/** What is never pruned: an instance is none without it. */
const isKept = (base: Base, section: Section, row: { id?: string; client_id?: string }): boolean =>
  (section === 'organizations' && row.id === DEFAULT_ORGANIZATION) ||
  (section === 'clients' && row.client_id === base.config.admin_client_id)

const all = {
  organizations: allOrganizations,
  roles: allRoles,
  users: allUsers,
  groups: allGroups,
  clients: allClients,
  identity_providers: allProviders,
}

async function* prune({ context, tx }: Work, { entries, present }: ReadSeed): AsyncGenerator<Step> {
  const slugs = new Map((await allOrganizations(tx)).map(({ id, slug }) => [id, slug]))
  for (const section of sections) {
    if (!present.has(section)) continue
    const nameIn = nameOf[section] as (value: object) => string
    const wanted = new Set(
      (entries[section] as Entry[]).flatMap(({ value }) => [
        foldIdentifier(nameIn(value)),
        ...('id' in value && value.id ? [value.id] : []),
      ]),
    )
    // What is left of a section once those before it are done: an organization takes its users along.
    for (const row of await all[section](tx)) {
      const organization = 'organization_id' in row ? slugs.get(row.organization_id) : undefined
      const name = nameIn({ ...row, organization })
      if (
        wanted.has(foldIdentifier(name)) ||
        ('id' in row && wanted.has(row.id)) ||
        isKept(context, section, row)
      )
        continue
      const run = async (work: Work): Promise<Change> => {
        await (kinds[section] as unknown as Kind<Section, object>).remove(work.context, row)
        return { action: 'delete', section, name }
      }
      yield { path: `${section}: ${name}`, run }
    }
  }
}
