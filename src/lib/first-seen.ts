/** Maximum number of ids that {@link firstSeen} remembers. The oldest is forgotten first. */
const REMEMBERED = 10_000

/**
 * Returns a function that returns true for an id unless it remembers the id from an earlier call. Readers of
 * the audit log use the function to skip events that they have already read. They read some events twice,
 * because an event may become visible after newer events, and because SQLite gives the `seq` of removed
 * events to new events.
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
