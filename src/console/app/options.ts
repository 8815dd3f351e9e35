import { useList } from './hooks.ts'
import { words } from './words.ts'

export type Option = readonly [value: string, label: string]

/** Options of a choice. If there is a next page, choosing the last option loads it. */
export interface Options {
  all: readonly Option[]
  more(): void
}

/**
 * Value of the option that loads the next page. The value is a line break, because no id or name contains a
 * line break.
 */
export const MORE = '\n'

/** Reads the objects of an organization page by page as options. Reads nothing while `path` is false. */
export const useOptions = <T>(
  path: string | false,
  organization_id: string,
  optionOf: (item: T) => Option,
): Options => {
  const { items, hasMore, more } = useList<T>(path, { organization_id, limit: 100 })
  const all = items.map(optionOf)
  return { all: hasMore ? [...all, [MORE, words.common.more]] : all, more }
}
