import { othersRun } from '#src/lib/turn.ts'

/**
 * Maximum number of rows that one statement compares. A read on SQLite blocks the event loop, and 5,000 rows
 * take about 10 ms.
 */
export const SLICE = 5000

/**
 * Calls `read` for one slice of rows after another, until `read` returns undefined. `read` gets the place
 * after which the slice begins, and returns the place at which the slice ends. Other requests run between two
 * slices.
 */
export const inSlices = async <Place>(
  first: Place | undefined,
  read: (from: Place | undefined) => Promise<Place | undefined>,
): Promise<void> => {
  for (let place = first; ; await othersRun()) {
    place = await read(place)
    if (place === undefined) return
  }
}
