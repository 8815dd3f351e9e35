import { useEffect, useState } from 'preact/hooks'
import { answerOf, asProblem, type Problem } from './api.ts'
import { accessToken } from './session.ts'

/** Milliseconds before a broken stream is opened again, enough for a server to restart. */
const AGAIN = 2_000
/**
 * Maximum number of items in memory. When another item arrives, these items are dropped and the list is read
 * again.
 */
const KEPT = 500

interface Message {
  event: string
  data: string
}

/**
 * Yields the messages of a stream, as many at once as have arrived:
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
async function* messagesOf(answer: Response): AsyncGenerator<Message[]> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { done: true }
    if (done) return
    const blocks = (text + value).split('\n\n')
    text = blocks.pop() ?? ''
    yield blocks.flatMap(block => {
      const field = (name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
      return field('data') ? { event: field('event'), data: field('data') } : []
    })
  }
}

/** State of a stream of the admin API. */
export interface Followed<T> {
  /** Items that arrived after the latest call of `onStart`, newest first. The list may contain them, too. */
  items: T[]
  /** Number of items received from the stream at this path. */
  count: number
  isOpen: boolean
  problem: Problem | undefined
}

const nothing = { items: [], count: 0 }

/**
 * Reads the stream at `path`. Reads nothing while `path` is undefined. A stream that breaks is opened again.
 * A stream that the API refuses with a status from 400 to 428 stays closed. `onStart` reads the list of
 * earlier items. It is called each time the stream has opened, and when more than `KEPT` items have arrived.
 * Each call drops the items in memory, because the list contains all items in order, including those from the
 * time when the stream was closed.
 */
export const useStream = <T>(path: string | undefined, onStart: () => void): Followed<T> => {
  const [read, setRead] = useState<Pick<Followed<T>, 'items' | 'count'>>(nothing)
  const [isOpen, setOpen] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  useEffect(() => {
    setRead(nothing)
    setProblem(undefined)
    if (path === undefined) return
    const stop = new AbortController()
    const { signal } = stop
    const follow = async (): Promise<void> => {
      const answer = await answerOf('GET', path, { signal })
      setOpen(true)
      setProblem(undefined)
      let kept = 0
      const start = (): void => {
        kept = 0
        setRead(({ count }) => ({ items: [], count }))
        onStart()
      }
      start()
      for await (const messages of messagesOf(answer)) {
        // The API has ended the stream, or the console has dropped the token after a time without activity.
        // If the token is the reason, the next attempt asks the person to sign in again.
        const end = accessToken() === '' ? 0 : messages.findIndex(({ event }) => event === 'error')
        const sent = end < 0 ? messages : messages.slice(0, end)
        if (kept + sent.length > KEPT) start()
        kept += sent.length
        // All of them are shown in one step, because a slow device needs a minute to show 500 one by one.
        const fresh = sent.map(({ data }) => JSON.parse(data) as T).reverse()
        setRead(({ items, count }) => ({ items: [...fresh, ...items], count: count + fresh.length }))
        if (end >= 0) return
      }
    }
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        const found = await follow().then(() => undefined, asProblem)
        if (signal.aborted) return
        setOpen(false)
        setProblem(found)
        if (found && found.status >= 400 && found.status < 429) return
        await new Promise(resolve => setTimeout(resolve, AGAIN))
      }
    }
    void run()
    return () => {
      stop.abort()
      setOpen(false)
    }
  }, [path])
  return { ...read, isOpen, problem }
}
