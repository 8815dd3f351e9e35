import { type ComponentChildren, createContext } from 'preact'
import { useContext, useState } from 'preact/hooks'
import type { Detail, Problem } from './api.ts'
import { fieldLimits } from './limits.ts' with { type: 'macro' }
import { reveal } from './router.ts'

/** Limits of a field in the API: a text, a number or a list of texts. */
export interface Limit {
  /** Maximum length in UTF-16 code units. */
  maxLength?: number
  pattern?: string
  /**
   * Message of the API for a text that is too long or does not match `pattern`, or for a list of too many
   * texts.
   */
  message?: string | undefined
  min?: number
  max?: number
  required?: boolean
  /**
   * Maximum number of texts in a list. A form edits the list as one text, in which spaces or line breaks
   * separate the texts.
   */
  maxItems?: number
  /** Limits of each text of a list. */
  item?: Limit
}
type Limits = Record<string, Limit>

const all = fieldLimits()

interface Calling {
  limits: Limits
  /** The refusal of the last call. */
  problem: Problem | undefined
  /** The refusal of the last call, without the details of fields that were edited after that call. */
  standing: Problem | undefined
}

const Operation = createContext<Calling>({ limits: {}, problem: undefined, standing: undefined })

/**
 * Returns a refusal without the details of edited fields, because these details are about the old values.
 * Returns undefined when a field was edited and the refusal has no other details.
 */
const standingOf = (problem: Problem | undefined, edited: string[]): Problem | undefined => {
  if (!problem || edited.length === 0) return problem
  const details = problem.details?.filter(
    ({ field }) => !edited.some(name => field === name || field.startsWith(`${name}.`)),
  )
  return details?.length ? { ...problem, details } : undefined
}

/** Returns the limits of an operation. A key of `all`, such as `PUT /users/*`, has `*` in place of the id. */
const limitsOf = (method: string, path: string): Limits =>
  all[`${method} ${path.replace(/^(\/[a-z-]+\/)[^/]+$/, '$1*')}`] ?? {}

/**
 * Shows a form that calls an operation of the API. The fields in the form get the limits of this operation
 * and their refusals from `problem`.
 */
export const ApiForm = (props: {
  method?: 'GET' | 'POST' | 'PUT'
  path: string
  problem: Problem | undefined
  class?: string
  onSubmit(): void
  children: ComponentChildren
}) => {
  const { method = 'POST', path, problem, onSubmit } = props
  const [edits, setEdits] = useState<{ since?: Problem; names: string[] }>({ names: [] })
  const edited = edits.since === problem ? edits.names : []
  return (
    <form
      class={props.class}
      onSubmit={event => {
        event.preventDefault()
        onSubmit()
      }}
      onInput={({ target }) =>
        problem && setEdits({ since: problem, names: [...edited, (target as HTMLInputElement).name] })
      }
      onInvalidCapture={event => {
        // The browser moves the focus to the first invalid field, so the section with that field is opened.
        const first = event.currentTarget.querySelector<HTMLInputElement>(
          ':is(input, textarea, select):invalid',
        )
        if (first && first === event.target) reveal(first)
        if (!first?.validity.customError) return
        // The form already shows a custom message below the field, so the browser must not show it.
        event.preventDefault()
        first.focus()
      }}
    >
      <Operation.Provider
        value={{ limits: limitsOf(method, path), problem, standing: standingOf(problem, edited) }}
      >
        {props.children}
      </Operation.Provider>
    </form>
  )
}

/** Returns the limits of a field in the enclosing form. */
export const useLimit = (name: string): Limit => {
  const { limits } = useContext(Operation)
  const item = name.replaceAll(/\.\d+(?=\.|$)/g, '.*')
  return limits[item] ?? limits[item.replace(/\.[^.]*$/, '.*')] ?? {}
}

/** Returns the refusals of a field and of its parts in the enclosing form. */
export const useRefusals = (name: string | undefined): Detail[] =>
  useContext(Operation).standing?.details?.filter(
    ({ field }) => field === name || field.startsWith(`${name}.`),
  ) ?? []

/**
 * Returns the refusal `given`. If `given` is the refusal of the enclosing form, the result omits the fields
 * that the person has edited after the refusal.
 */
export const useStanding = (given: Problem | undefined): Problem | undefined => {
  const { problem, standing } = useContext(Operation)
  return given === problem ? standing : given
}
