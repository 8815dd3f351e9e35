import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NewEvent } from '#src/audit/record.ts'
import { type ImageRows, imageOf } from '#src/storage/sqlite/empty-image.ts'

/** An event of the default seed. Its id, time and MAC are made when the server starts. */
type SeedEvent = Pick<NewEvent, 'type' | 'target_id' | 'target_type' | 'organization_id'> & {
  metadata: Record<string, unknown>
}

/** Rows and events that the default seed writes into a new database. Keys and sealed values are left out. */
interface SeedRows {
  /** Times are milliseconds relative to the start of the server, at most 0. */
  rows: ImageRows
  events: SeedEvent[]
}

const read = (): SeedRows => JSON.parse(readFileSync(join(import.meta.dir, 'default-rows.json'), 'utf8'))

/** Returns the prepared database of the default seed. This is a Bun macro (lib/embed.ts). */
export const seededImage = (): string => imageOf(read().rows)

/** Returns the events of the default seed. This is a Bun macro (lib/embed.ts). */
export const seedEvents = (): SeedEvent[] => read().events
