import { useRef, useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { opened } from './router.ts'
import { show } from './toast.tsx'

/**
 * Returns a function `run` that makes an API call for a button, and the state of this call. `onDone` gets the
 * answer, unless the person has left the screen: it may open another screen.
 */
export const useAction = <T = unknown>(onDone?: (answer: T) => void) => {
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const running = useRef(new Set<string>()).current
  /**
   * Calls the API, unless the same call still runs, as after a double click. After success the text `done` is
   * shown and announced. Returns the answer of a success.
   */
  const run = async (method: string, path: string, done?: string, body?: unknown): Promise<T | undefined> => {
    const call = JSON.stringify([method, path, body])
    if (running.has(call)) return undefined
    running.add(call)
    const screen = opened.value
    setBusy(true)
    setProblem(undefined)
    try {
      const { data } = await callApi<T>(method, path, body === undefined ? {} : { body })
      if (done) show(done)
      if (opened.value === screen) onDone?.(data)
      return data
    } catch (error) {
      setProblem(asProblem(error))
      return undefined
    } finally {
      running.delete(call)
      setBusy(false)
    }
  }
  return { run, problem, dialog: { problem, isBusy } }
}
