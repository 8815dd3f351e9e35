import { createHash } from 'node:crypto'
import type { IdentityProvider } from '#test/support/saml/identity-provider.ts'
import type { Processes } from './load.ts'
import { removeDirectory, type ServerProcess } from './server-process.ts'

export const REDIRECT_URI = 'https://app.example.com/callback'
export const USER = { username: 'bench', password: 'Correct-Horse-7-Battery' }

export const VERIFIER = 'bench-verifier-bench-verifier-bench-verifier'
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

export interface BenchClient {
  client_id: string
  client_secret: string
}

/** The server to which the operations send their requests. */
export interface Target {
  name: string
  process: ServerProcess
  /** Processes that do the work when `process` is a balancer. */
  copies?: ServerProcess[]
  /** Returns the ids of the database processes, if there are any. */
  database?(): number[]
  /** Totals since the start: commits, and transactions that were retried. */
  commits?(): Promise<{ done: number; retried: number }>
  paths: Record<'discovery' | 'jwks' | 'authorize' | 'token' | 'introspect' | 'userinfo', string>
  /** Clients that use the code flow and refresh tokens, one for each algorithm of ID tokens. */
  es256: BenchClient
  rs256: BenchClient
  /** A client for client credentials with the scope `scope`. */
  service: BenchClient & { scope: string }
  introspector: BenchClient
  /** Cookies of a browser that is signed in. */
  cookie: string
  /** A token for Gatehouse's admin API. */
  admin_token?: string
  /** True if the server checks the password at a login. */
  proves_passwords?: boolean
  /** The identity provider that the server trusts. */
  saml?: IdentityProvider
}

export const processesOf = ({ process, copies = [process], database = () => [] }: Target): Processes => ({
  server: copies.map(({ pid }) => pid),
  database,
})

export const stopTarget = async ({ process, copies = [] }: Target): Promise<void> => {
  for (const server of new Set([process, ...copies])) {
    await server.stop()
    await removeDirectory(server.directory)
  }
}

export const authorizePath = (target: Pick<Target, 'paths'>, client_id: string): string =>
  `${target.paths.authorize}?${new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: REDIRECT_URI,
    scope: 'openid profile email',
    state: 'state-of-the-bench',
    nonce: 'nonce-of-the-bench',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
  })}`

const MOST_STEPS = 12

interface Form {
  action: string
  fields: Record<string, string>
}

const attribute = (tag: string, name: string): string | undefined =>
  new RegExp(`\\b${name}="([^"]*)"`)
    .exec(tag)?.[1]
    ?.replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')

/**
 * Fills in the first form whose method is POST, with the values of the benchmark's user. Skips the form "Not
 * you?", which changes to another account.
 */
export const fillForm = (html: string): Form => {
  const forms = html.match(/<form[^>]*method="post"[\s\S]*?<\/form>/gi) ?? []
  const form = forms.find(each => !/<button class="link"/.test(each))
  if (!form) throw new Error(`No form in this page:\n${html.slice(0, 2000)}`)
  const known: Record<string, string> = {
    username: USER.username,
    login: USER.username,
    password: USER.password,
  }
  const fields: Record<string, string> = {}
  // Uses the last of several buttons, which is "approve" on the consent page.
  for (const [input] of form.matchAll(/<(?:input|button)[^>]*>/g)) {
    const name = attribute(input, 'name')
    if (name) fields[name] = attribute(input, 'value') || known[name] || ''
  }
  return { action: attribute(form, 'action') ?? '', fields }
}

/** An absolute URL and the fields to post to it. */
type Step = [url: string, form?: Form['fields']]

/**
 * Returns the request that follows an answer from `url`: to the target of the redirect, or with the form of
 * the page.
 */
export const nextStep = (location: string | null | undefined, page: string, url: string): Step => {
  if (location) return [new URL(location, url).href]
  const { action, fields } = fillForm(page)
  return [new URL(action, url).href, fields]
}

/**
 * Completes the login at each address in one browser, with the consent if the server requests one. Returns
 * the cookies of the browser.
 */
export const logIn = async (origin: string, authorize: string[]): Promise<string> => {
  const jar = new Map<string, string>()
  const cookies = () => [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const ask = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: cookies() },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value) jar.set(name, value)
      else jar.delete(name)
    }
    return response
  }
  const next = async (response: Response, url: string): Promise<Step | undefined> => {
    const location = response.headers.get('location')
    return location?.startsWith(REDIRECT_URI) ? undefined : nextStep(location, await response.text(), url)
  }
  for (const path of authorize) {
    let step: Step | undefined = [origin + path]
    for (let steps = 0; step; steps++) {
      if (steps > MOST_STEPS) throw new Error(`The login does not end: it is at ${step[0]}`)
      step = await next(await ask(...step), step[0])
    }
  }
  return cookies()
}
