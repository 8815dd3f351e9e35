import { othersRun } from '#src/lib/turn.ts'
import type { Queries, Store } from './store.ts'

/**
 * Maximum number of rows that one statement compares: a read on SQLite holds the event loop, and 5,000 rows
 * take about 10 ms.
 */
export const SLICE = 5000

/**
 * Calls `read` for one slice of rows after another, until it returns undefined. `read` gets the place after
 * which the slice begins and returns the place at which it ends. Other requests run between two slices.
 */
export const inSlices = async <Place>(
  store: Pick<Store, 'read'>,
  first: Place | undefined,
  read: (q: Queries, from: Place | undefined) => Promise<Place | undefined>,
): Promise<void> => {
  for (let from = first; ; ) {
    const place = from
    const end = await store.read(q => read(q, place))
    if (end === undefined) return
    from = end
    await othersRun()
  }
}
