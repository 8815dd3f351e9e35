import type { Core } from '#src/context.ts'
import { purgeOne } from '#src/directory/purge.ts'
import { listPurges } from '#src/storage/purges.ts'
import type { ReadSeed } from './read.ts'
import { seedSections } from './schema.ts'

/**
 * Finishes the purges of deleted objects whose ids the file names. Until its purge is finished, the id of a
 * deleted object is refused for a new object (`chosenId`). A file that restores an object is often applied
 * right after the deletion of the object.
 */
export const finishPurges = async (context: Core, { entries }: ReadSeed): Promise<void> => {
  const ids = new Set<unknown>([
    ...entries.clients.map(({ value }) => value.client_id),
    ...seedSections.flatMap(section => entries[section].map(({ value }) => 'id' in value && value.id)),
  ])
  for (const row of await context.store.read(listPurges)) if (ids.has(row.id)) await purgeOne(context, row)
}
