import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, asProblem, open, type Problem } from './api.ts'

/** Milliseconds before a broken stream is opened again. */
const AGAIN = 2_000
/** Most messages that are kept. */
const KEPT = 500

interface Message {
  event: string
  data: string
}

/** Returns the messages of a stream: https://html.spec.whatwg.org/multipage/server-sent-events.html */
async function* messagesOf(answer: Response): AsyncGenerator<Message> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { done: true }
    if (done) return
    const blocks = (text + value).split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
      if (field('data')) yield { event: field('event'), data: field('data') }
    }
  }
}

/** A stream of the admin API that is being read. */
export interface Followed<T> {
  /** The newest first. */
  items: T[]
  isOpen: boolean
  problem: Problem | undefined
  clear(): void
}

/**
 * Reads a stream and opens it again when it breaks; `undefined` reads nothing. `onOpen` runs whenever it has
 * been opened, before the first item.
 */
export const useStream = <T>(path: string | undefined, onOpen: () => void): Followed<T> => {
  const [items, setItems] = useState<T[]>([])
  const [isOpen, setOpen] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const opened = useRef(onOpen)
  opened.current = onOpen
  useEffect(() => {
    setItems([])
    setProblem(undefined)
    if (path === undefined) return
    const stop = new AbortController()
    const follow = async (): Promise<void> => {
      const answer = await open(path, stop.signal)
      setOpen(true)
      setProblem(undefined)
      opened.current()
      for await (const { event, data } of messagesOf(answer)) {
        if (event === 'error') throw new ApiError(JSON.parse(data) as Problem)
        setItems(items => [JSON.parse(data) as T, ...items].slice(0, KEPT))
      }
    }
    /** A refusal of the token is answered by a new login; other refusals stay. */
    const run = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        try {
          await follow()
        } catch (error) {
          const found = asProblem(error)
          if (!stop.signal.aborted) setProblem(found)
          if (found.status === 403 || found.status === 422) return setOpen(false)
        }
        setOpen(false)
        await new Promise(resolve => setTimeout(resolve, AGAIN))
      }
    }
    void run()
    return () => {
      stop.abort()
      setOpen(false)
    }
  }, [path])
  return { items, isOpen, problem, clear: () => setItems([]) }
}
