import type { ComponentChildren } from 'preact'
import type { Listed } from './hooks.ts'
import { Card, Failure, Loading } from './parts.tsx'
import { shownOf, words } from './words.ts'

/** Shows the rows of a list, its states, and the button for the next page. */
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
        {list.problem ? (
          <Failure problem={list.problem} retry={list.reload} />
        ) : list.isLoading ? (
          <Loading rows={5} />
        ) : list.items.length === 0 ? (
          empty
        ) : (
          <ul class="rows">{list.items.map(row)}</ul>
        )}
      </Card>
      {list.items.length > 0 && (
        <p class="foot">
          <span>{shownOf(list.items.length, list.total)}</span>
          {list.hasMore && (
            <button type="button" onClick={list.more}>
              {words.common.more}
            </button>
          )}
        </p>
      )}
    </>
  )
}
