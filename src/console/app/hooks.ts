import { useEffect, useRef, useState } from 'preact/hooks'
import { asProblem, callApi, type Problem, read, withQuery } from './api.ts'

/** State of an object that is read from the API. */
export interface Loaded<T> {
  data: T | undefined
  etag: string
  /** Failure of the last read. `data` can still be the result of an earlier read. */
  problem: Problem | undefined
  isLoading: boolean
  reload(): void
  set(data: T, etag?: string): void
}

/** Reads the object at `path`. Reads nothing while `path` is undefined. */
export const useObject = <T>(path: string | undefined): Loaded<T> => {
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<{ data?: T; etag?: string; problem?: Problem; of?: string }>({})
  useEffect(() => {
    if (path === undefined) return
    let isCurrent = true
    callApi<T>('GET', path)
      .then(({ data, etag }) => isCurrent && setState({ data, etag, of: path }))
      .catch(error => {
        if (!isCurrent) return
        // The data of an earlier read stays, because a form on the screen may have unsaved changes.
        setState(state => ({ ...(state.of === path && state), problem: asProblem(error), of: path }))
      })
    return () => {
      isCurrent = false
    }
  }, [path, turn])
  const known = state.of === path ? state : {}
  return {
    data: known.data,
    etag: known.etag ?? '',
    problem: known.problem,
    isLoading: !known.data && !known.problem,
    reload: () => setTurn(turn => turn + 1),
    set: (data, etag = known.etag ?? '') => path !== undefined && setState({ data, etag, of: path }),
  }
}

/** A page of a list, as the admin API returns it. */
export interface PageOf<T> {
  data: T[]
  pagination: { total: number; has_more: boolean; next_cursor?: string }
}

/** State of a list, with the pages that have been loaded so far. */
export interface Listed<T> {
  items: T[]
  total: number
  hasMore: boolean
  isLoading: boolean
  problem: Problem | undefined
  more(): void
  reload(): void
  /** Repeats the read that has failed. */
  retry?: (() => void) | undefined
}

/** The pages of a list that have been read, and the address of the first page. */
interface Pages<T> {
  of: string
  items: T[]
  /** Undefined for a list that has no pages. */
  last?: PageOf<T>['pagination']
}

/**
 * Reads a list page by page. Reads nothing while `path` is false. When a filter changes, the list starts
 * again with the first page.
 */
export const useList = <T>(
  path: string | false,
  filters: Record<string, string | number | undefined>,
): Listed<T> => {
  const first = withQuery(path || '', filters)
  const [turn, setTurn] = useState(0)
  const [pages, setPages] = useState<Pages<T>>()
  const [failed, setFailed] = useState<{ problem: Problem; retry(): void }>()
  const reading = `${turn} ${first}`
  const wanted = useRef('')
  wanted.current = reading
  const load = async (before?: Pages<T>): Promise<void> => {
    try {
      const cursor = before?.last?.next_cursor
      const { data, pagination: last } = await read<PageOf<T>>(withQuery(path || '', { ...filters, cursor }))
      if (wanted.current !== reading) return
      setFailed(undefined)
      const items = [...(before?.items ?? []), ...data]
      // The list may have been read again while this page was read. The page then has no place in it.
      setPages(pages => (before && pages !== before ? pages : { of: first, items, last }))
    } catch (error) {
      if (wanted.current === reading) setFailed({ problem: asProblem(error), retry: () => void load(before) })
    }
  }
  useEffect(() => {
    if (path) void load()
  }, [first, turn])
  const isCurrent = pages?.of === first
  const items = isCurrent ? pages.items : []
  return {
    items,
    total: isCurrent ? (pages.last?.total ?? 0) : 0,
    hasMore: isCurrent && (pages.last?.has_more ?? false),
    isLoading: !isCurrent && !failed,
    problem: failed?.problem,
    retry: failed?.retry,
    more: () => void load(pages),
    reload: () => {
      setFailed(undefined)
      setTurn(turn => turn + 1)
    },
  }
}

/**
 * Returns the latest value that has stayed the same for `ms` milliseconds. The default of `ms` is a typical
 * pause after a typed word.
 */
export const useSettled = <T>(value: T, ms = 200): T => {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
