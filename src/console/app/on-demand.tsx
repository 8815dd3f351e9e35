import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { asProblem, type Problem } from './api.ts'
import { Failure, Loading } from './parts.tsx'

/** A screen. If it shows one object, `id` is the id of this object. */
export type Screen = (props: { id: string }) => JSX.Element

/**
 * Returns a screen whose script is loaded when the screen is first shown, so that the start of the console
 * loads little. The names of scripts change with the version of the server. When a script is missing, the
 * button to try again therefore loads the whole page.
 */
export const onDemand = (load: () => Promise<Screen>): Screen => {
  let loaded: Screen | undefined
  return ({ id }) => {
    const [early] = useState(() => loaded)
    const [late, setLate] = useState<Screen>()
    const [problem, setProblem] = useState<Problem>()
    useEffect(() => {
      if (!early)
        load().then(
          screen => {
            loaded = screen
            setLate(() => screen)
          },
          error => setProblem(asProblem(error)),
        )
    }, [])
    const Found = early ?? late
    if (problem) return <Failure problem={problem} retry={() => location.reload()} />
    return Found ? <Found id={id} /> : <Loading rows={6} />
  }
}
