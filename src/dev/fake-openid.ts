import { hash, type KeyObject, randomUUID } from 'node:crypto'
import { accessTokenHash } from '#src/protocol/oidc/claims.ts'
import { makeKeyPair, signWith } from '#src/tokens/signature.ts'

type Claims = Record<string, unknown>

/** Content of a token response before it is signed and sent. Tests change it. */
export interface Draft {
  header: Record<string, unknown>
  claims: Claims
  access_token: string
  userinfo: Claims
  key: KeyObject
}

interface Options {
  /** Issuer, with or without a path. The URLs of the endpoints begin with it. */
  issuer: string
  alter?: (draft: Draft) => void
  /** Changes the published key set. */
  publish?: (keys: Claims[]) => Claims[]
}

interface Grant {
  user: Claims
  request: URLSearchParams
}

/** Encodes a token part without jose, because jose refuses most of the invalid tokens that tests need. */
const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** Escapes text for HTML content and quoted attributes. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui;max-width:24rem;margin:3rem auto;padding:0 1rem}
input:not([type=checkbox]){display:block;width:100%;box-sizing:border-box;font:inherit;padding:.5rem}
button{font:inherit;padding:.6rem 1.25rem}`
const SUBMIT = 'document.forms[0].submit()'

const source = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`

/** Returns a page of a fake provider. */
export const html = (body: string): Response =>
  new Response(
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fake provider</title><style>${STYLE}</style><main>${body}</main></html>`,
    {
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        // The policy has no form-action, because Chromium also applies it to the redirects that follow a
        // POST, including redirects by the client.
        'content-security-policy': `default-src 'none'; style-src ${source(STYLE)}; script-src ${source(SUBMIT)}; base-uri 'none'; frame-ancestors 'none'`,
      },
    },
  )

/** Renders hidden form fields. */
export const hidden = (fields: Iterable<[string, string]>): string =>
  [...fields]
    .map(([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`)
    .join('')

const signInPage = (action: string, request: URLSearchParams): Response => {
  const hint = escapeHtml(request.get('login_hint') ?? 'robin@upstream.example')
  return html(`<h1>Fake provider</h1><p>Sign in as any user.</p>
<form method="post" action="${escapeHtml(action)}">${hidden([['request', String(request)]])}
<p><label>Subject <input name="sub" value="robin" required></label></p>
<p><label>Name <input name="name" value="Robin Upstream"></label></p>
<p><label>Email <input name="email" value="${hint}"></label></p>
<p><label><input type="checkbox" name="email_verified" value="true" checked> The address is verified</label></p>
<p><button name="decision" value="approve">Sign in</button> <button name="decision" value="deny">Cancel</button></p></form>`)
}

/** Returns a page with a form that submits itself. Without JavaScript the page shows a button. */
export const postingPage = (action: string, fields: Iterable<[string, string]>): Response =>
  html(`<form method="post" action="${escapeHtml(action)}">${hidden(fields)}<button>Continue</button></form>
<script>${SUBMIT}</script>`)

/** True for an http or https URL. A URL of another scheme could run a script in the server's origin. */
export const hasWebScheme = (url: string | null | undefined): url is string =>
  /^https?:$/.test(URL.parse(url ?? '')?.protocol ?? '')

/**
 * Returns the authorization response: a redirect with the result in the query, or a form that posts the
 * result.
 */
const answer = (request: URLSearchParams, redirect_uri: string, result: Record<string, string>): Response => {
  const fields = new URLSearchParams({ ...result, state: request.get('state') ?? '' })
  if (request.get('response_mode') !== 'form_post') {
    const location = new URL(redirect_uri)
    for (const [name, value] of fields) location.searchParams.append(name, value)
    return new Response(null, { status: 303, headers: { location: location.href } })
  }
  return postingPage(redirect_uri, fields)
}

const userOf = (form: URLSearchParams): Claims => {
  const [given_name, ...family] = (form.get('name') ?? '').split(' ').filter(Boolean)
  const email = form.get('email')
  return {
    sub: form.get('sub') ?? '',
    ...(given_name && { given_name }),
    ...(family.length > 0 && { family_name: family.join(' ') }),
    ...(email && { email, email_verified: form.get('email_verified') === 'true' }),
  }
}

const metadataOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  userinfo_endpoint: `${issuer}/userinfo`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ['code'],
  response_modes_supported: ['query', 'form_post'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
})

/** Returns the claims of an ID token that is valid for five minutes. */
const idTokenClaims = (issuer: string, { user, request }: Grant, access_token: string): Claims => {
  const now = Math.floor(Date.now() / 1000)
  const { sub, ...profile } = user
  return {
    iss: issuer,
    sub,
    aud: request.get('client_id'),
    iat: now,
    exp: now + 300,
    ...(request.has('max_age') && { auth_time: now }),
    nonce: request.get('nonce'),
    at_hash: accessTokenHash(access_token, 'ES256'),
    ...profile,
  }
}

/**
 * Returns the OpenID provider for development and tests. Its login page accepts any identity, and its
 * endpoints accept any client and secret. Keys and grants are kept in memory. The provider uses the machine's
 * clock, as a remote provider would.
 */
export const fakeOpenId = async ({ issuer, alter: twist = () => {}, publish = keys => keys }: Options) => {
  const { privateKey, publicKey } = await makeKeyPair('ES256')
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'fake', alg: 'ES256', use: 'sig' }
  const base_path = new URL(issuer).pathname.replace(/\/$/, '')
  const codes = new Map<string, Grant>()
  const tokens = new Map<string, Claims>()

  const mint = (grant: Grant): Response => {
    const access_token = randomUUID()
    const draft: Draft = {
      header: { alg: 'ES256', kid: 'fake', typ: 'JWT' },
      claims: idTokenClaims(issuer, grant, access_token),
      access_token,
      userinfo: grant.user,
      key: privateKey,
    }
    twist(draft)
    tokens.set(draft.access_token, draft.userinfo)
    const input = `${encode(draft.header)}.${encode(draft.claims)}`
    const signature = draft.header.alg === 'none' ? '' : signWith(draft.key, 'ES256', input)
    return Response.json({
      access_token: draft.access_token,
      token_type: 'Bearer',
      expires_in: 300,
      id_token: `${input}.${signature}`,
    })
  }

  const endpoints: Record<string, (request: Request) => Response | Promise<Response>> = {
    '/.well-known/openid-configuration': () => Response.json(metadataOf(issuer)),
    '/jwks': () => Response.json({ keys: publish([jwk]) }),
    '/authorize': async request => {
      const isForm = request.method === 'POST'
      const form = new URLSearchParams(isForm ? await request.text() : undefined)
      const parameters = isForm
        ? new URLSearchParams(form.get('request') ?? '')
        : new URL(request.url).searchParams
      const redirect_uri = parameters.get('redirect_uri')
      if (!hasWebScheme(redirect_uri))
        return new Response('redirect_uri must be an http or https URL.', { status: 400 })
      if (!isForm) return signInPage(`${issuer}/authorize`, parameters)
      if (form.get('decision') === 'deny')
        return answer(parameters, redirect_uri, { error: 'access_denied', iss: issuer })
      const code = randomUUID()
      codes.set(code, { user: userOf(form), request: parameters })
      return answer(parameters, redirect_uri, { code, iss: issuer })
    },
    '/token': async request => {
      const form = new URLSearchParams(await request.text())
      const grant = codes.get(form.get('code') ?? '')
      codes.delete(form.get('code') ?? '')
      const challenge = hash('sha256', form.get('code_verifier') ?? '', 'base64url')
      const isRight =
        grant?.request.get('code_challenge') === challenge &&
        grant.request.get('redirect_uri') === form.get('redirect_uri')
      return grant && isRight ? mint(grant) : Response.json({ error: 'invalid_grant' }, { status: 400 })
    },
    '/userinfo': request => {
      const token = request.headers.get('authorization')?.replace(/^Bearer /i, '') ?? ''
      const user = tokens.get(token)
      return user ? Response.json(user) : new Response(null, { status: 401 })
    },
  }

  return {
    issuer,
    fetch: async (request: Request): Promise<Response> => {
      const { pathname } = new URL(request.url)
      const endpoint = endpoints[pathname.slice(base_path.length)]
      return endpoint ? endpoint(request) : new Response('Not found', { status: 404 })
    },
  }
}

/** Path of the fake provider on a development server. The issuer of the provider ends with this path. */
export const FAKE_OPENID = '/dev/openid'

/** Returns the fake provider of the server at `url`. The first request creates it. */
export const fakeOpenIdOf = (url: string): ((request: Request) => Promise<Response>) => {
  let fake: ReturnType<typeof fakeOpenId> | undefined
  return async request => {
    fake ??= fakeOpenId({ issuer: url + FAKE_OPENID })
    return (await fake).fetch(request)
  }
}
