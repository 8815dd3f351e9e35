import { hostActor, record } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { seedEvents, seededImage } from './seed-rows.ts' with { type: 'macro' }
import { startTimes } from './store.ts'

/**
 * The database after the default seed. It contains no keys, sealed values or events. A start from this image
 * is faster than a start that applies the seed.
 */
export const seedImage: string = Object.freeze({ gzip: seededImage() }).gzip

const events = Object.freeze(seedEvents())

/**
 * Completes a store that was created from the image. The times in the image are relative to the start, so the
 * current time is added. Events are recorded with a new id, time and MAC.
 */
export const completeSeed = (base: Core): Promise<void> =>
  base.store.write(async tx => {
    await startTimes(tx, base.clock.now())
    for (const event of events) await record(base, tx, { ...hostActor, ...event })
  })
