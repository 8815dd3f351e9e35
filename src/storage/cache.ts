import type { Queries, Store, Topic } from './store.ts'

interface Entries<V> {
  values: Map<string, V>
  loading: Map<string, Promise<V>>
  generation: number
}

/**
 * Returns `load` with a cache in memory. A result stays in the cache until a commit of this or another copy
 * changes the topic (postgres/changes.ts states the delay). The result of a load that began before the change
 * is not cached (`generation`), so the cache never keeps an old row. While a result is being loaded, other
 * reads of this result wait for the same load. The result undefined is not cached, because clients could fill
 * the memory with unknown names. A cache with `limit` results is emptied before the next result is added. To
 * drop only the least recently used result, the cache would have to record each hit.
 *
 * `peek` returns a cached result without a promise, for requests in which awaiting a promise would take most
 * of the time.
 */
export const cached = <V>(
  topic: Topic,
  load: (q: Queries, key: string, store: Store) => Promise<V>,
  limit = 10_000,
) => {
  const id = {}
  const entriesOf = (store: Store): Entries<V> => {
    const known = store.caches.get(id) as Entries<V> | undefined
    if (known) return known
    const entries: Entries<V> = { values: new Map(), loading: new Map(), generation: 0 }
    store.onChange(topics => {
      if (topics && !topics.has(topic)) return
      entries.values.clear()
      entries.loading.clear()
      entries.generation++
    })
    store.caches.set(id, entries)
    return entries
  }
  const peek = (store: Store, key: string): V | undefined => entriesOf(store).values.get(key)
  const read = (store: Store, key: string): Promise<V> => {
    const entries = entriesOf(store)
    const hit = entries.values.get(key)
    if (hit !== undefined) return Promise.resolve(hit)
    const known = entries.loading.get(key)
    if (known) return known
    const loading = loadInto(entries, store, key).finally(() => {
      if (entries.loading.get(key) === loading) entries.loading.delete(key)
    })
    entries.loading.set(key, loading)
    return loading
  }
  const loadInto = async (entries: Entries<V>, store: Store, key: string): Promise<V> => {
    const { generation } = entries
    const value = await store.read(q => load(q, key, store))
    if (value !== undefined && generation === entries.generation) {
      if (entries.values.size >= limit) entries.values.clear()
      entries.values.set(key, value)
    }
    return value
  }
  return Object.assign(read, { peek })
}
