import { useEffect, useState } from 'preact/hooks'
import { withQuery } from './api.ts'
import { useSettled } from './hooks.ts'
import { go, path, query } from './router.ts'

/**
 * Keeps the filters of a list in the address of its screen, so that Back, a reload and a copied link show the
 * same rows. Returns the filters twice: as the person has entered them, and for reading the list. The filters
 * for reading change only after a pause in typing. A filter that is not set is ''.
 */
export const useFilters = <Name extends string>(names: readonly Name[]) => {
  type Filters = Record<Name, string>
  const [entered, setEntered] = useState(
    () => Object.fromEntries(names.map(name => [name, query.value.get(name) ?? ''])) as Filters,
  )
  const settled = useSettled(entered)
  const filters = Object.fromEntries(names.map(name => [name, settled[name].trim()])) as Filters
  useEffect(() => go(withQuery(path.value, filters), { replace: true }), [settled])
  const change = (changed: Partial<Filters>) => setEntered(entered => ({ ...entered, ...changed }))
  return { entered, filters, change, isFiltered: Object.values(filters).some(Boolean) }
}
