import { useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { show } from './toast.tsx'

/** State of one API call that a button starts: pending, and the refusal. */
export const useAction = (onDone: () => void) => {
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const run = async (method: string, path: string, done: string, body?: unknown): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      await callApi(method, path, body === undefined ? {} : { body })
      show(done)
      onDone()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return { run, problem, dialog: { problem, isBusy } }
}
