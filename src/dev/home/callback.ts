import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { DevState } from '#src/dev/controls.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { newSecret } from '#src/lib/secrets.ts'
import { matches } from '#src/protocol/oauth/redirect-uri.ts'
import { type Html, markup } from './markup.ts'
import { code, type DevPage, HOME, jsonBox } from './page.ts'

export const CALLBACK = '/dev/callback'
export const TRY = '/dev/try'
const DEFAULT_SCOPES = ['openid', 'profile', 'email']
/**
 * Maximum number of pending logins that these pages keep in memory. When there are more, the oldest login is
 * dropped.
 */
const MOST = 100

/** Sends a request to this server in the role of a client. */
export type Send = (path: string, init: RequestInit) => Promise<Response>

/** Returns the URI of the callback page if the client has registered it as a redirect URI. */
export const callbackUri = (origin: string, registered: readonly string[]): string | undefined => {
  const { protocol, port } = new URL(origin)
  return [origin + CALLBACK, `${protocol}//127.0.0.1:${port || 80}${CALLBACK}`].find(uri =>
    registered.some(one => matches(one, uri)),
  )
}

type Field = 'client_id' | 'redirect_uri' | 'code' | 'code_verifier' | 'client_secret'

const labels: [name: Field, label: string][] = [
  ['client_id', 'Client id'],
  ['client_secret', 'Client secret (empty for a public client)'],
  ['redirect_uri', 'Redirect URI'],
  ['code', 'Code (valid for 60 seconds)'],
  ['code_verifier', 'Code verifier: its SHA-256 is the code_challenge'],
]

const page = (title: string, body: Html, status = 200): DevPage => ({ title, body, status })

/** Returns a form for the token request. The person enters the parameters that are missing in `known`. */
const redeemPage = (known: Partial<Record<Field, string>>): DevPage =>
  page(
    'Redeem the code',
    markup`<p>The authorization request succeeded. Complete the token request:</p>
<form method="post" action="${CALLBACK}" class="redeem">
${labels.map(
  ([name, label]) =>
    markup`<p><label for="${name}">${label}</label> <input id="${name}" name="${name}" autocomplete="off" value="${known[name]}"></p>`,
)}
<button class="button primary small">Redeem</button></form>`,
  )

const tokenBox = (name: string, token: string): Html => {
  try {
    return markup`<h2>${name}</h2>${jsonBox(decodeProtectedHeader(token))}${jsonBox(decodeJwt(token))}
<details><summary>Encoded</summary><pre tabindex="0">${token}</pre></details>`
  } catch {
    return markup`<h2>${name}</h2><pre tabindex="0">${token}</pre>`
  }
}

const hiddenFields = (fields: Record<string, string>): Html[] =>
  Object.entries(fields).map(([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">`)

const authentication = ({ token_endpoint_auth_method: method, client_id }: Client, secret: string) => {
  if (method === 'client_secret_basic') {
    const pair = [client_id, secret].map(encodeURIComponent).join(':')
    return { headers: { authorization: `Basic ${btoa(pair)}` }, fields: {} }
  }
  return {
    headers: {},
    fields: { client_id, ...(method === 'client_secret_post' && { client_secret: secret }) },
  }
}

const titles = { access_token: 'Access token', id_token: 'ID token', refresh_token: 'Refresh token' }

/**
 * Lets a person try a login at a client. The page sends the authorization request, and it serves the redirect
 * URI in place of the client.
 */
export const openTrials = ({ context, secrets }: DevState) => {
  const begun = new Map<string, Record<'client_id' | 'redirect_uri' | 'code_verifier', string>>()
  const origin = context.config.url

  const begin = async (client_id: string): Promise<Response | DevPage> => {
    const client = await findClient(context, client_id)
    const redirect_uri = client && callbackUri(origin, client.redirect_uris)
    if (!redirect_uri)
      return page(
        'This client can’t be tried',
        markup`<p>Add ${code(origin + CALLBACK)} to its redirect URIs to try it here.</p><p><a href="${HOME}">Overview</a></p>`,
        400,
      )
    const [state, code_verifier] = [newSecret(), newSecret()]
    begun.set(state, { client_id, redirect_uri, code_verifier })
    for (const oldest of begun.keys()) if (begun.size > MOST) begun.delete(oldest)
    const query = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri,
      scope: DEFAULT_SCOPES.filter(scope => client.scopes.includes(scope)).join(' '),
      state,
      code_challenge: hash('sha256', code_verifier, 'base64url'),
      code_challenge_method: 'S256',
    })
    return seeOther(`${origin}/oauth/authorize?${query}`)
  }

  const redeem = async (form: URLSearchParams, send: Send): Promise<DevPage> => {
    const given = (name: string) => form.get(name)?.trim() ?? ''
    const client = await findClient(context, given('client_id'))
    if (!client) return page('The client does not exist', markup`<p><a href="${HOME}">Overview</a></p>`, 400)
    const secret = given('client_secret') || (secrets.get(client.client_id) ?? '')
    const { headers, fields } = authentication(client, secret)
    const grant = given('refresh_token')
      ? { grant_type: 'refresh_token', refresh_token: given('refresh_token') }
      : {
          grant_type: 'authorization_code',
          ...Object.fromEntries(['code', 'redirect_uri', 'code_verifier'].map(name => [name, given(name)])),
        }
    const answer = await send('/oauth/token', {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams({ ...grant, ...fields })),
    })
    const body: unknown = await answer.json().catch(() => undefined)
    return answer.ok ? tokensPage(client, body as Record<string, unknown>, secret, send) : refusedPage(body)
  }

  const refusedPage = (body: unknown): DevPage =>
    page(
      'The token request was refused',
      markup`${jsonBox(body ?? null)}<p><a href="${HOME}">Overview</a></p>`,
      400,
    )

  const tokensPage = async (
    { client_id }: Client,
    answer: Record<string, unknown>,
    secret: string,
    send: Send,
  ): Promise<DevPage> => {
    const token = (name: string): string => (typeof answer[name] === 'string' ? answer[name] : '')
    const userinfo = await send('/oauth/userinfo', {
      headers: { authorization: `Bearer ${token('access_token')}` },
    })
    const refresh = { client_id, client_secret: secret, refresh_token: token('refresh_token') }
    return page(
      'Signed in',
      markup`<p>Tokens of the client ${code(client_id)}, decoded.</p>
<div class="tools">
${token('refresh_token') && markup`<form method="post" action="${CALLBACK}">${hiddenFields(refresh)}<button class="button secondary small">Refresh</button></form>`}
<a class="button secondary small" href="${TRY}?${String(new URLSearchParams({ client_id }))}">Sign in again</a>
${token('id_token') && markup`<a class="button secondary small" href="/oauth/logout?${String(new URLSearchParams({ id_token_hint: token('id_token') }))}">Sign out</a>`}
</div>
${Object.entries(titles).map(([name, title]) => (token(name) ? tokenBox(title, token(name)) : ''))}
${userinfo.ok ? markup`<h2>Userinfo</h2>${jsonBox(await userinfo.json())}` : ''}`,
    )
  }

  return {
    begin,
    /**
     * Handles the authorization response and redeems the code. If a parameter of the token request is
     * missing, returns a page that asks for it.
     */
    arrive: async (query: URLSearchParams, send: Send): Promise<DevPage> => {
      const error = query.get('error')
      if (error !== null)
        return page(
          'The authorization request was refused',
          markup`${jsonBox({ error, error_description: query.get('error_description') ?? undefined })}<p><a href="${HOME}">Overview</a></p>`,
          400,
        )
      const state = query.get('state') ?? ''
      const attempt = begun.get(state)
      begun.delete(state)
      const known = { redirect_uri: origin + CALLBACK, ...attempt, code: query.get('code') ?? '' }
      const client = attempt && (await findClient(context, attempt.client_id))
      const isKnown = client?.type === 'public' || secrets.has(client?.client_id ?? '')
      return isKnown && known.code ? redeem(new URLSearchParams(known), send) : redeemPage(known)
    },
    submit: async ({ request }: Call, send: Send): Promise<DevPage> =>
      redeem(new URLSearchParams(await readForm(request)), send),
  }
}
