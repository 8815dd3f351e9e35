import { randomBytes } from 'node:crypto'
import { hostActor, record } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type MasterKey, masterKey } from '#src/lib/master-key.ts'
import { StorageError } from '#src/storage/errors.ts'
import { getSetting, putSetting } from '#src/storage/settings.ts'
import type { Queries, Store } from '#src/storage/store.ts'

/**
 * Name of the server setting that contains the instance key, sealed under the master key. All other sealed
 * data is encrypted under keys that are derived from the instance key.
 */
const NAME = 'instance_key'

const findSealed = (q: Queries): Promise<string | undefined> => getSetting(q, NAME)

/** True when the instance has no key yet. A master key may be created only in this case. */
export const isNewInstance = async (store: Store): Promise<boolean> =>
  (await store.read(findSealed)) === undefined

const seal = (master: MasterKey, bytes: Uint8Array): string => master.seal(bytes, NAME).toString('base64')

/** Returns the instance key. Returns undefined when another master key sealed the instance key. */
const open = (master: MasterKey, sealed: string): Buffer | undefined => {
  try {
    return master.open(Buffer.from(sealed, 'base64'), NAME)
  } catch {
    return undefined
  }
}

const wrongKey = (): StorageError =>
  new StorageError(
    'The master key does not belong to this database. Set the right master key (GATEHOUSE_MASTER_KEY, or master.key in the data directory).',
  )

/** @throws StorageError when none of the master keys opens the instance key */
const openWith = (masters: MasterKey[], sealed: string): { key: MasterKey; master: MasterKey } => {
  for (const master of masters) {
    const bytes = open(master, sealed)
    if (bytes) return { key: masterKey(bytes), master }
  }
  throw wrongKey()
}

/**
 * Checks the master keys before the schema is upgraded, so that a refused start does not upgrade the schema
 * under running copies.
 *
 * @param masters returns the master keys to try. It is called only when there is an instance key
 * @throws StorageError when none of the master keys opens the instance key
 */
export const checkBeforeUpgrade = async (q: Queries, masters: () => MasterKey[]): Promise<void> => {
  const sealed = await findSealed(q)
  if (sealed !== undefined) openWith(masters(), sealed)
}

/**
 * Returns the instance key and the master key that opened it. Creates the instance key at the first start.
 * Only the instance key is sealed under the master key, so a new master key changes only one row, and running
 * servers keep working.
 *
 * @param masters master keys to try
 * @throws StorageError when none of the master keys opens the instance key
 */
export const openInstanceKey = async (
  database: Store,
  masters: MasterKey[],
  now: number,
): Promise<{ key: MasterKey; master: MasterKey }> => {
  const [first] = masters
  if (first && !(await database.read(findSealed)))
    await database.write(async tx => {
      if (!(await findSealed(tx))) await putSetting(tx, NAME, seal(first, randomBytes(32)), now)
    })
  return openWith(masters, (await database.read(findSealed)) ?? '')
}

/**
 * Seals the instance key under another master key. Every later start needs that master key.
 *
 * @throws StorageError when `from` is not the current master key, or when `to` is the current master key
 */
export const changeMasterKey = async (base: Core, from: MasterKey, to: MasterKey): Promise<void> => {
  await base.store.write(async tx => {
    const sealed = (await findSealed(tx)) ?? ''
    const bytes = open(from, sealed)
    if (!bytes) throw wrongKey()
    if (open(to, sealed))
      throw new StorageError(
        'The new master key is the current master key. Name a file with another key, or a file that does not exist.',
        1,
      )
    await putSetting(tx, NAME, seal(to, bytes), base.clock.now())
    await record(base, tx, {
      ...hostActor,
      type: 'admin.settings_changed',
      target_id: 'master_key',
      target_type: 'settings',
      organization_id: DEFAULT_ORGANIZATION,
      metadata: { action: 'changed' },
    })
  })
}
