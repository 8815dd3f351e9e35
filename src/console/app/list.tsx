import type { ComponentChildren } from 'preact'
import type { Problem } from './api.ts'
import type { Listed } from './hooks.ts'
import { Card, Failure, Loading } from './parts.tsx'
import { shownOf, words } from './words.ts'

/** Shows the rows of a list. Without rows it shows that the list is loading, has failed or is empty. */
export const Rows = <T,>(props: {
  list: { problem: Problem | undefined; reload(): void }
  /** Undefined while the list is read. */
  items: readonly T[] | undefined
  /** Number of placeholder rows while the list is read. */
  placeholders?: number
  empty?: ComponentChildren
  row(item: T): ComponentChildren
}) => {
  const { list, items, placeholders = 3, empty, row } = props
  if (list.problem) return <Failure problem={list.problem} retry={list.reload} />
  if (!items) return <Loading rows={placeholders} />
  return items.length === 0 ? <>{empty}</> : <ul class="rows">{items.map(row)}</ul>
}

/** Shows how many rows are loaded, and the button for the next page. */
export const ListFoot = (props: { shown: number; total: number; hasMore: boolean; more(): void }) =>
  props.shown === 0 ? null : (
    <p class="foot">
      <span>{shownOf(props.shown, props.total)}</span>
      {props.hasMore && (
        <button type="button" onClick={props.more}>
          {words.common.more}
        </button>
      )}
    </p>
  )

/** Shows a list in a card, with the button for the next page. */
export const ListCard = <T,>(props: {
  list: Listed<T>
  title?: string
  lead?: string
  empty: ComponentChildren
  row(item: T): ComponentChildren
}) => {
  const { list, empty, row } = props
  return (
    <>
      <Card flush {...(props.title && { title: props.title, lead: props.lead })}>
        <Rows
          list={list}
          items={list.isLoading ? undefined : list.items}
          placeholders={5}
          empty={empty}
          row={row}
        />
      </Card>
      <ListFoot shown={list.items.length} total={list.total} hasMore={list.hasMore} more={list.more} />
    </>
  )
}
