import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
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
  /** Maximum texts of a list, which a form edits as one text with spaces or line breaks between them. */
  maxItems?: number
  /** Limits of each text of a list. */
  item?: Limit
}
type Limits = Record<string, Limit>

const all = fieldLimits()

const Operation = createContext<{ limits: Limits; problem: Problem | undefined }>({
  limits: {},
  problem: undefined,
})

/**
 * Returns the limits of an operation. In the keys of all limits `*` stands for an id, the second part of a
 * path.
 */
const limitsOf = (method: string, path: string): Limits =>
  all[`${method} ${path.replace(/^(\/[a-z-]+\/)[^/]+$/, '$1*')}`] ?? {}

/** Shows a form that calls an operation. Its fields have the operation's limits and show its refusals. */
export const ApiForm = (props: {
  method?: 'GET' | 'POST' | 'PUT'
  path: string
  problem: Problem | undefined
  class?: string
  onSubmit(): void
  children: ComponentChildren
}) => {
  const { method = 'POST', path, problem, onSubmit } = props
  return (
    <form
      class={props.class}
      onSubmit={event => {
        event.preventDefault()
        onSubmit()
      }}
      onInvalidCapture={({ target, currentTarget }) => {
        // The browser moves the focus to the first of these fields.
        const first = currentTarget.querySelector(':is(input, textarea, select):invalid')
        if (first && first === target) reveal(first)
      }}
    >
      <Operation.Provider value={{ limits: limitsOf(method, path), problem }}>
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
  useContext(Operation).problem?.details?.filter(
    ({ field }) => field === name || field.startsWith(`${name}.`),
  ) ?? []
