import { findSubject } from '#src/sessions/login-store.ts'
import { findCode } from '#src/tokens/code-store.ts'
import type { Json, TestApp } from './app.ts'
import { answerOf, type Browser, type Page } from './browser.ts'
import { create } from './callers.ts'

export const PASSWORD = 'Correct-horse-7'
export const REDIRECT = 'https://app.example/callback'
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
/** The S256 challenge of `VERIFIER`. */
export const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

type App = Pick<TestApp, 'admin'>

export const addUser = (app: App, username: string, more: Json = {}): Promise<Json> =>
  create(app, '/users', {
    username,
    email: `${username}@example.com`,
    first_name: username[0]?.toUpperCase() + username.slice(1),
    last_name: 'Example',
    password: PASSWORD,
    ...more,
  })

/** Creates a client of the authorization code flow. By default, the client requires no consent. */
export const addClient = (app: App, client_id: string, more: Json = {}): Promise<Json> =>
  create(app, '/clients', {
    client_id,
    name: `The ${client_id}`,
    type: 'confidential',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile', 'email'],
    consent_required: false,
    ...more,
  })

export const addOrganization = (app: App, slug: string, more: Json = {}): Promise<Json> =>
  create(app, '/organizations', { name: slug, slug, ...more })

/** Returns the URL of a sign-in link that an administrator creates for the user. */
export const signInLink = async (app: App, user: { id: string }): Promise<string> => {
  const { status, body } = await app.admin('POST', `/users/${user.id}/sign-in-link`)
  if (status !== 201) throw new Error(`no link for ${user.id}: ${status} ${JSON.stringify(body)}`)
  return body.url
}

/** Returns the URL of an authorization request. A parameter with the value undefined is left out. */
export const authorizeUrl = (client_id: string, more: Record<string, string | undefined> = {}): string => {
  const parameters = {
    response_type: 'code',
    client_id,
    redirect_uri: REDIRECT,
    scope: 'openid',
    state: 'xyz',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...more,
  }
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `/oauth/authorize?${new URLSearchParams(given)}`
}

/** Enters name and password into the login page and returns the next page or the redirect to the client. */
export const signIn = async (
  browser: Browser,
  page: Page,
  username: string,
  password = PASSWORD,
): Promise<Page> => browser.follow(await browser.submit(page, { username, password }, '/oauth/login'))

/**
 * Opens the client's authorization request, signs in, and returns the parameters of the redirect to the
 * client.
 */
export const logInTo = async (
  browser: Browser,
  client_id: string,
  username: string,
  more: Record<string, string | undefined> = {},
): Promise<Record<string, string>> =>
  answerOf(await signIn(browser, await browser.get(authorizeUrl(client_id, more)), username))

/** Returns the content of an authorization code, with client and user. Throws if the code is unusable. */
export const codeRow = async ({ context }: Pick<TestApp, 'context'>, presented: string | undefined) => {
  const found = await context.store.read(async q => {
    for (const { client_id } of await q.select().from(q.tables.clients)) {
      const code = await findCode(context, q, { code: presented ?? '', client_id })
      if (!code || code === 'burnt') continue
      const user = await findSubject(q, code, presented ?? '')
      if (user && user !== 'burnt')
        return { ...code, client_id, user_id: user.id, organization_id: user.organization_id }
    }
    return undefined
  })
  if (!found) throw new Error(`no code ${presented}`)
  return found
}
