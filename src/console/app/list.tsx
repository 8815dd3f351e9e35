import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Listed } from './hooks.ts'
import { Card, Failure, Loading } from './parts.tsx'
import { shownOf, words } from './words.ts'

/**
 * Shows the rows of a list. When there are no rows, shows that the list is loading, has failed or is empty.
 * The failure of a later read is shown below the rows.
 */
export const Rows = <T,>(props: {
  list: Pick<Listed<T>, 'problem' | 'reload' | 'retry'>
  /** Undefined while the list loads. */
  items: readonly T[] | undefined
  /** Number of placeholder rows while the list loads. */
  placeholders?: number
  empty?: ComponentChildren
  row(item: T): ComponentChildren
}) => {
  const { list, items, placeholders = 3, empty, row } = props
  const { problem, retry = list.reload } = list
  const failure = problem && <Failure problem={problem} retry={retry} />
  if (!items) return failure ?? <Loading rows={placeholders} />
  if (items.length === 0) return failure ?? empty
  return (
    <>
      <ul class="rows">{items.map(row)}</ul>
      {failure}
    </>
  )
}

/** Shows an empty list in one line: its title and a text. */
export const EmptyCard = (props: {
  title: string
  text: ComponentChildren
  children?: ComponentChildren
}) => (
  <Card title={props.title} aside={<span class="hint">{props.text}</span>}>
    {props.children}
  </Card>
)

/**
 * Shows a short list on a card with a title. An empty list takes one line, without `lead` and `aside`. A list
 * with `aside` has no button for the next page, because `aside` links to the whole list.
 */
export const ShortList = <T,>(props: {
  title: string
  lead?: string
  list: Listed<T>
  /** Text that is shown when the list has no rows. */
  empty: ComponentChildren
  aside?: ComponentChildren
  /** Content above the rows, such as the refusal of an action. */
  children?: ComponentChildren
  row(item: T): ComponentChildren
}) => {
  const { title, lead, list, empty, aside, children, row } = props
  if (!list.isLoading && !list.problem && list.items.length === 0)
    return (
      <EmptyCard title={title} text={empty}>
        {children}
      </EmptyCard>
    )
  return (
    <div>
      <Card title={title} lead={lead} aside={aside} flush>
        {children}
        <Rows list={list} items={list.isLoading ? undefined : list.items} placeholders={2} row={row} />
      </Card>
      {list.hasMore && !aside && <ListFoot list={list} />}
    </div>
  )
}

/**
 * Shows how many rows are loaded, and the button for the next page. Screen readers announce the number, and
 * that nothing is found. They announce only changes of an element, so it also exists while the list loads.
 */
export const ListFoot = <T,>({
  list,
  isLive,
}: {
  list: Listed<T>
  /** True while rows arrive by themselves. The screen then announces them. */
  isLive?: boolean
}) => {
  const { items, total, hasMore, isLoading, problem, more } = list
  const isEmpty = items.length === 0 && !hasMore
  const foot = useRef<HTMLParagraphElement>(null)
  const controls = () =>
    foot.current?.previousElementSibling?.querySelectorAll<HTMLElement>('a, button, input') ?? []
  /** Number of controls in the rows when the button was pressed. */
  const known = useRef(-1)
  useLayoutEffect(() => {
    if (hasMore) return
    // The last page has removed the button, so the first new row gets the focus.
    if (document.activeElement === document.body) controls()[known.current]?.focus()
    known.current = -1
  }, [hasMore])
  return (
    <p ref={foot} class={isEmpty ? 'unseen' : 'foot'}>
      <span role={isLive ? undefined : 'status'}>
        {isEmpty ? !isLoading && !problem && words.palette.none : shownOf(items.length, total)}
      </span>
      {hasMore && (
        <button
          type="button"
          onClick={() => {
            known.current = controls().length
            more()
          }}
        >
          {words.common.more}
        </button>
      )}
    </p>
  )
}

/** Shows a list in a card, with the button for the next page. */
export const ListCard = <T,>(props: {
  list: Listed<T>
  title?: string
  lead?: string
  /**
   * Returns the title of the card that shows an item. Items with the same title share a card. If all items
   * share one card, or the list has failed, the card has the title `title`.
   */
  titleOf?(item: T): string
  empty: ComponentChildren
  row(item: T): ComponentChildren
}) => {
  const { list, titleOf, empty, row } = props
  const groups = titleOf ? [...Map.groupBy(list.items, titleOf)] : []
  return (
    <>
      {groups.length > 1 ? (
        <div class="stack">
          {groups.map(([title, items]) => (
            <Card key={title} flush title={title}>
              <Rows
                list={title === groups.at(-1)?.[0] ? list : { ...list, problem: undefined }}
                items={items}
                row={row}
              />
            </Card>
          ))}
        </div>
      ) : (
        <Card flush {...(props.title && { title: props.title, lead: props.lead })}>
          <Rows
            list={list}
            items={list.isLoading ? undefined : list.items}
            placeholders={5}
            empty={empty}
            row={row}
          />
        </Card>
      )}
      <ListFoot list={list} />
    </>
  )
}
