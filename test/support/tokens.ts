import { DAY } from '#src/lib/duration.ts'
import type { LoginId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { startLogin } from '#src/sessions/logins.ts'
import { storeCode } from '#src/tokens/code-store.ts'
import { composeCode, type NewCode } from '#src/tokens/codes.ts'
import type { Json, TestApp } from './app.ts'
import { CHALLENGE, REDIRECT, VERIFIER } from './people.ts'

type App = Pick<TestApp, 'call' | 'context'>

export interface Answer {
  status: number
  body: Json
  headers: Headers
}

const answerOf = async (response: Response): Promise<Answer> => {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

type Init = RequestInit & { ip?: string; headers?: Record<string, string> }
type Form = Record<string, string | undefined>

const body = (form: Form): URLSearchParams =>
  new URLSearchParams(Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined))

/** Posts a form. A field with the value undefined is left out. */
export const post = async (app: App, path: string, form: Form, init: Init = {}): Promise<Answer> =>
  answerOf(await app.call(path, { method: 'POST', body: body(form), ...init }))

export const get = async (app: App, path: string, init: Init = {}): Promise<Answer> =>
  answerOf(await app.call(path, init))

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})

/**
 * Takes the object that the admin API returned when it created a client. Returns the client's credentials.
 */
export const secretOf = ({
  client_id,
  client_secret,
}: Json): { client_id: string; client_secret?: string } => ({
  client_id,
  ...(client_secret && { client_secret }),
})

/** Signs the user in without the pages, and returns the hash of the browser's login cookie. */
export const addLogin = ({ context }: App, user: Json, browser_hash: SecretHash = hashSecret(newSecret())) =>
  context.store.write(tx =>
    startLogin(context, tx, {
      browser_hash,
      user_id: user.id,
      organization_id: user.organization_id,
      acr: '1',
      amr: ['pwd'],
      client_info: { ip_address: '192.0.2.10', user_agent: 'A browser' },
      expires_at: context.clock.now() + DAY,
    }),
  )

type MoreOfCode = Partial<NewCode> & { login_id?: LoginId }

/** Issues a code as an authorization does. Starts a new login if `login_id` is undefined. */
export const addCode = async (
  app: App,
  client: Json,
  user: Json,
  { login_id, ...more }: MoreOfCode = {},
): Promise<string> => {
  const { context } = app
  const id = login_id ?? (await addLogin(app, user))
  const client_info = { ip_address: '192.0.2.10', user_agent: 'A browser' }
  const { code, stored } = composeCode(context, {
    client_id: client.client_id,
    login: { ...client_info, id, codes_revoked: null },
    redirect_uri: REDIRECT,
    scope: 'openid profile email',
    nonce: undefined,
    code_challenge: CHALLENGE,
    auth_time: context.clock.now(),
    acr: '1',
    amr: ['pwd'],
    client_info,
    ...more,
  })
  if (stored) await context.store.write(tx => storeCode(tx, stored))
  return code
}

/** Exchanges a code with a valid request. `more` replaces parameters of this request. */
export const redeem = (app: App, client: Json, code: string, more: Form = {}, init?: Init): Promise<Answer> =>
  post(
    app,
    '/oauth/token',
    {
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT,
      code_verifier: VERIFIER,
      ...secretOf(client),
      ...more,
    },
    init,
  )

export const refresh = (
  app: App,
  client: Json,
  refresh_token: string,
  more: Form = {},
  init?: Init,
): Promise<Answer> =>
  post(
    app,
    '/oauth/token',
    { grant_type: 'refresh_token', refresh_token, ...secretOf(client), ...more },
    init,
  )

/** Returns the tokens of a new session. */
export const grantTokens = async (
  app: App,
  client: Json,
  user: Json,
  more: MoreOfCode = {},
): Promise<Json> => {
  const { status, body: tokens } = await redeem(app, client, await addCode(app, client, user, more))
  if (status !== 200) throw new Error(`no tokens: ${status} ${JSON.stringify(tokens)}`)
  return tokens
}

const part = (token: string, n: number): Json =>
  JSON.parse(Buffer.from(token.split('.')[n] ?? '', 'base64url').toString())

export const headerOf = (token: string): Json => part(token, 0)
export const claimsOf = (token: string): Json => part(token, 1)
