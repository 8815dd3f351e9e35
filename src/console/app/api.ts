import { signal } from '@preact/signals'
import { accessToken, renew } from './session.ts'
import { say, words } from './words.ts'

/** A refused field. */
export interface Detail {
  field: string
  message: string
}

/** Refusal of the admin API, or another failure. `status` is 0 for a failure that is not an answer. */
export interface Problem {
  status: number
  error: string
  error_description: string
  request_id?: string
  details?: Detail[]
  /** Present in a 412: the object as it is stored now. */
  current?: Record<string, unknown>
  /** Present in a 409 `last_administrator`: the name that confirms the change. */
  confirm?: string
}

export class ApiError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.error_description)
    this.problem = problem
  }
}

/** Question that asks the person to authenticate again. If the person declines, the call fails. */
export interface Renewal {
  reason: 'step_up' | 'ended'
  /** Maximum seconds since the login of the new token. */
  max_age: number
  answer(granted: boolean): void
}
export const renewal = signal<Renewal | undefined>(undefined)

/**
 * Answer to the open question. While the question is open, other calls that need the answer wait for it too.
 */
let asked: Promise<boolean> | undefined

/** Asks the person to sign in again for a new token. The screen and its unsaved fields stay. */
const askForToken = (reason: Renewal['reason'], max_age: number): Promise<boolean> => {
  asked ??= new Promise<boolean>(answer => {
    renewal.value = { reason, max_age, answer }
  }).finally(() => {
    asked = undefined
    renewal.value = undefined
  })
  return asked
}

/**
 * Opens the window for the new authentication. It must be called in a click handler, because browsers block
 * windows that are opened elsewhere.
 */
export const openRenewal = async ({ max_age, answer }: Renewal): Promise<void> => answer(await renew(max_age))

/** Question that asks the person to confirm that an organization loses its last administrator. */
export interface Confirmation {
  name: string
  answer(granted: boolean): void
}
export const confirmation = signal<Confirmation | undefined>(undefined)

const askToConfirm = (name: string): Promise<boolean> =>
  new Promise<boolean>(answer => {
    confirmation.value = { name, answer }
  }).finally(() => {
    confirmation.value = undefined
  })

/** Options of a call. */
export interface CallOptions {
  body?: unknown
  /** Entity tag with which the object was read, or `*` for a change of any stored version. */
  if_match?: string
  /** Name that the person typed to confirm the call. */
  confirm?: string
  signal?: AbortSignal
}

const fetched = (url: string, options?: RequestInit): Promise<Response> =>
  fetch(url, options).catch(() => {
    throw new ApiError({ status: 0, error: 'offline', error_description: words.failures.unreachable })
  })

const send = (
  method: string,
  path: string,
  { body, if_match, confirm, signal }: CallOptions,
): Promise<Response> =>
  fetched(`/api/v1/admin${withQuery(path, { confirm })}`, {
    method,
    headers: {
      authorization: `Bearer ${accessToken()}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(if_match && { 'if-match': if_match }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })

const problemOf = async (answer: Response): Promise<Problem> => {
  const text = await answer.text()
  try {
    return JSON.parse(text) as Problem
  } catch {
    return {
      status: answer.status,
      error: 'unexpected',
      error_description: say(words.failures.answered, { status: answer.status }),
    }
  }
}

/**
 * Calls the admin API. When the API refuses the token or demands a newer authentication, the person is asked
 * to sign in again. When a change leaves an organization without an administrator, the person is asked to
 * confirm the change. If the person agrees, the call is repeated.
 *
 * @throws ApiError
 */
export const answerOf = async (
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Response> => {
  let answer = await send(method, path, options)
  if (answer.status === 401) {
    const challenge = answer.headers.get('www-authenticate') ?? ''
    const [, max_age] = /max_age="(\d+)"/.exec(challenge) ?? []
    // The login must be a minute younger than the API demands, so that the login is still recent enough when
    // the call is repeated.
    const granted = await askForToken(max_age ? 'step_up' : 'ended', max_age ? Number(max_age) - 60 : 86_400)
    if (granted) answer = await send(method, path, options)
  }
  if (answer.ok) return answer
  const problem = await problemOf(answer)
  const { confirm } = problem
  if (confirm !== undefined && options.confirm === undefined && (await askToConfirm(confirm)))
    return answerOf(method, path, { ...options, confirm })
  throw new ApiError(problem)
}

/**
 * Calls the admin API and reads its answer.
 *
 * @throws ApiError
 */
export const callApi = async <T>(
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<{ data: T; etag: string }> => {
  const answer = await answerOf(method, path, options)
  const data = (answer.status === 204 ? undefined : await answer.json()) as T
  return { data, etag: answer.headers.get('etag') ?? '' }
}

/**
 * Reads a text file of the server, such as a stylesheet.
 *
 * @throws ApiError
 */
export const readText = async (url: string): Promise<string> => {
  const answer = await fetched(url)
  if (!answer.ok) throw new ApiError(await problemOf(answer))
  return answer.text()
}

/** Reads an object or a list. */
export const read = async <T>(path: string): Promise<T> => (await callApi<T>('GET', path)).data

/** Returns a path with a query. Empty values are left out. */
export const withQuery = (path: string, values: Record<string, string | number | undefined>): string => {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path
}

/** Returns the problem of an error. An error that is not from the API becomes a problem with status 0. */
export const asProblem = (error: unknown): Problem =>
  error instanceof ApiError
    ? error.problem
    : {
        status: 0,
        error: 'console',
        error_description: error instanceof Error ? error.message : String(error),
      }
