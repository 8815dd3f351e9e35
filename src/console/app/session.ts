import { signal } from '@preact/signals'
import * as oauth from 'oauth4webapi'
import { CONSOLE_CLIENT } from '#src/lib/ids.ts'
import { nameOrder } from './words.ts'

/** The user of the console, read from the ID token. */
export interface Person {
  sub: string
  name: string
  email: string
  organization_id: string
}

/**
 * State of one authorization request, kept in the session storage until the server redirects back to the
 * console. Tokens are never stored.
 */
interface Attempt {
  state: string
  verifier: string
  path: string
}

const ATTEMPT = 'gatehouse-console'
/**
 * Key in the session storage for the organization of the last login. After a reload the person signs in at
 * this organization again. Without the key, a reload could use a login of this browser at another
 * organization.
 */
const ORGANIZATION = 'gatehouse-organization'
const CALLBACK = '/console/callback'
const RENEW = '/console/renew'
/** Parameters that a renewal adds to the authorization request. */
const RENEWING = ['max_age', 'login_hint', 'organization_id']

/** Issuer of this instance. */
export const issuer = document.documentElement.dataset.issuer ?? location.origin
/** False when the server sends no mail. */
export const sendsMail = document.documentElement.dataset.mail === 'on'
const server: oauth.AuthorizationServer = { issuer, token_endpoint: `${issuer}/oauth/token` }
const client: oauth.Client = { client_id: CONSOLE_CLIENT }
const redirect_uri = `${issuer}${CALLBACK}`

/**
 * The access token, kept in memory only. Browser storage outlives the page, and other scripts of the origin
 * can read it. A cookie is unsuitable, because browsers add cookies to requests that other sites cause
 * (CSRF).
 */
let token = ''
export const person = signal<Person | undefined>(undefined)

/** Returns the current access token. Returns '' without a session. */
export const accessToken = (): string => token

const begin = async (path: string, more: Record<string, string>): Promise<never> => {
  const [state, verifier] = [oauth.generateRandomState(), oauth.generateRandomCodeVerifier()]
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier)
  sessionStorage.setItem(ATTEMPT, JSON.stringify({ state, verifier, path } satisfies Attempt))
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri,
    scope: 'openid admin',
    state,
    code_challenge,
    code_challenge_method: 'S256',
    ...more,
  })
  location.replace(`${issuer}/oauth/authorize?${parameters}`)
  return new Promise(() => {})
}

/** Redeems the code in the URL of the redirect, and keeps the token. */
const finish = async ({ state, verifier }: Attempt): Promise<void> => {
  const parameters = oauth.validateAuthResponse(server, client, new URL(location.href), state)
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    redirect_uri,
    verifier,
    { [oauth.allowInsecureRequests]: location.protocol === 'http:' },
  )
  // The ID token comes directly from the server, so its times are compared with the server's clock. A wrong
  // clock on this device must not make the console refuse the token.
  const sent = Date.parse(answer.headers.get('date') ?? '')
  const clock = { [oauth.clockSkew]: Number.isNaN(sent) ? 0 : Math.round((sent - Date.now()) / 1000) }
  const result = await oauth.processAuthorizationCodeResponse(server, { ...client, ...clock }, answer, {
    requireIdToken: true,
  })
  accept(result.access_token, oauth.getValidatedIdTokenClaims(result) ?? {})
}

/**
 * Redirects to the login page. `prompt=login` forces a new authentication. Otherwise an existing login of
 * this browser would sign the same person in again at once.
 */
export const signInAnew = (): Promise<never> => {
  sessionStorage.removeItem(ORGANIZATION)
  return begin('/console', { prompt: 'login' })
}

const accept = (access_token: string, claims: Record<string, unknown>): void => {
  const text = (name: string): string => String(claims[name] ?? '')
  const name = nameOrder(text('given_name'), text('family_name')).join(' ').trim()
  token = access_token
  sessionStorage.setItem(ORGANIZATION, `org_${text('org_id')}`)
  person.value = {
    sub: text('sub'),
    name: name || text('preferred_username'),
    email: text('email'),
    organization_id: `org_${text('org_id')}`,
  }
}

/**
 * Milliseconds without a key press or click after which the token is dropped. A person may read for half an
 * hour, but an unattended screen must not act with that person's rights.
 */
const IDLE = 30 * 60_000
let lastUsed = Date.now()

const dropIdle = (): void => {
  if (Date.now() - lastUsed > IDLE) token = ''
}

/**
 * Drops the token after half an hour without a key press or click. The screen stays, so that unsaved entries
 * are not lost.
 */
export const watchIdleness = (): void => {
  for (const event of ['keydown', 'pointerdown'])
    addEventListener(
      event,
      () => {
        // No timer runs while the device sleeps, so the event that ends the sleep must see the pause.
        dropIdle()
        lastUsed = Date.now()
      },
      { capture: true },
    )
  setInterval(dropIdle, 30_000)
}

const channel = (): BroadcastChannel => new BroadcastChannel(ATTEMPT)

/**
 * The page has no session. The message is `insecure`, `renewed`, `elsewhere` with the URL of the console, or
 * the reason that the server gave.
 */
export class SessionError extends Error {}

/**
 * Redirects to the login page, or handles the redirect back. Resolves when there is a token. A window that
 * was opened only to renew the token sends the token to the console's window, closes and throws.
 *
 * @throws SessionError when the address cannot have a session, when the server refuses the authorization
 * request, and in the window that has sent a renewed token; other errors for an invalid redirect back and for
 * a failed token request
 */
export const startSession = async (): Promise<void> => {
  const { origin, pathname, search, hash } = location
  if (new URL(issuer).origin !== origin) throw new SessionError(`elsewhere ${issuer}/console`)
  if (!isSecureContext) throw new SessionError('insecure')
  const given = new URLSearchParams(search)
  if (pathname === RENEW)
    return begin(RENEW, Object.fromEntries(RENEWING.map(name => [name, given.get(name) ?? ''])))
  if (pathname !== CALLBACK) {
    const organization_id = given.get('organization') ?? sessionStorage.getItem(ORGANIZATION)
    return begin(pathname + search + hash, organization_id ? { organization_id } : {})
  }
  const kept = sessionStorage.getItem(ATTEMPT)
  sessionStorage.removeItem(ATTEMPT)
  if (kept === null) return begin('/console', {})
  const attempt = JSON.parse(kept) as Attempt
  try {
    await finish(attempt)
  } catch (error) {
    if (!(error instanceof oauth.AuthorizationResponseError)) throw error
    // The organization of the last login may be deleted. The next attempt must not ask for it again.
    if (error.error === 'invalid_request') sessionStorage.removeItem(ORGANIZATION)
    throw new SessionError(error.error_description ?? error.error)
  }
  if (attempt.path !== RENEW) return history.replaceState(null, '', attempt.path)
  channel().postMessage({ token, person: person.value })
  close()
  throw new SessionError('renewed')
}

/**
 * Opens a window in which the person authenticates again. Resolves when that window has sent a token: to true
 * if the token is of the same person, otherwise to false. Never resolves if the person closes the window.
 */
export const renew = (max_age: number): Promise<boolean> =>
  new Promise(resolve => {
    const answers = channel()
    answers.onmessage = ({ data }: MessageEvent<{ token: string; person: Person }>) => {
      answers.close()
      const isSame = data.person.sub === person.value?.sub
      if (isSame) token = data.token
      resolve(isSame)
    }
    const { email = '', organization_id = '' } = person.value ?? {}
    const asked = new URLSearchParams({ max_age: String(max_age), login_hint: email, organization_id })
    open(`${RENEW}?${asked}`, 'gatehouse-renew', 'popup,width=480,height=720')
  })
