/** Maximum number of ids that {@link firstSeen} remembers. */
const REMEMBERED = 10_000

/**
 * Returns a function that is true for an id that no earlier call had. Readers of the audit log need it,
 * because they read some events again: an event may become visible after newer ones, and SQLite uses the
 * `seq` of removed events again.
 */
export const firstSeen = (): ((id: string) => boolean) => {
  const ids = new Set<string>()
  return id => {
    if (ids.has(id)) return false
    ids.add(id)
    const [oldest] = ids
    if (ids.size > REMEMBERED && oldest !== undefined) ids.delete(oldest)
    return true
  }
}
