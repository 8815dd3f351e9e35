import { SECOND } from '#src/lib/duration.ts'
import { isStorageFailure } from './errors.ts'

/**
 * Milliseconds to wait for a read. If the database does not answer, a read fails only after up to 25 seconds,
 * but clients give up after 3 to 30 seconds.
 */
const PATIENCE = SECOND

/**
 * Returns the result of a read. Returns `last`, an earlier result, when the database cannot be read or does
 * not answer within a second. The read then goes on.
 */
export const orLast = <T>(reading: Promise<T>, last: T): Promise<T> => {
  const late = Promise.withResolvers<T>()
  const timer = setTimeout(late.resolve, PATIENCE, last)
  const read = reading.catch(error => {
    if (isStorageFailure(error)) return last
    throw error
  })
  return Promise.race([read, late.promise]).finally(() => clearTimeout(timer))
}
