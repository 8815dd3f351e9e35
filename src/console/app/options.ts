import { type Listed, useList } from './hooks.ts'
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

/** Returns the options from the loaded pages of a list, with the option that loads the next page. */
export const withMore = (
  { hasMore, more }: Pick<Listed<unknown>, 'hasMore' | 'more'>,
  all: readonly Option[],
): Options => ({ all: hasMore ? [...all, [MORE, words.common.more]] : all, more })

/** Reads the objects of an organization page by page as options. Reads nothing while `path` is false. */
export const useOptions = <T>(
  path: string | false,
  organization_id: string,
  optionOf: (item: T) => Option,
): Options => {
  const list = useList<T>(path, { organization_id, limit: 100 })
  return withMore(list, list.items.map(optionOf))
}
