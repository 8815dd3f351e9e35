import { hash } from 'node:crypto'
import type { Context, PublishedKeys } from '#src/context.ts'
import { locales } from '#src/http/locale.ts'
import { discoveryDocument } from '#src/protocol/oidc/discovery.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import { supportedAcrs } from '#src/sign-in/passkeys.ts'

/**
 * Seconds. Caches have a new key well before it signs, 15 minutes after its publication (tokens/rotation.ts).
 */
const MAX_AGE = 300

/** Headers by document: building them for each request takes a tenth of its time. */
const prepared = new WeakMap<PublishedKeys, Headers>()

const headersOf = (document: PublishedKeys): Headers => {
  const known = prepared.get(document)
  if (known) return known
  const headers = new Headers({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': `public, max-age=${MAX_AGE}`,
    'access-control-allow-origin': '*',
    etag: document.etag,
  })
  prepared.set(document, headers)
  return headers
}

const matches = (request: Request, etag: string): boolean => {
  const known = request.headers.get('if-none-match')
  return (
    known !== null && (known === '*' || known.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag))
  )
}

const answer = (request: Request, document: PublishedKeys): Response => {
  const headers = headersOf(document)
  return matches(request, document.etag)
    ? new Response(null, { status: 304, headers })
    : new Response(document.body, { headers })
}

/** Serves the same document on both paths: OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3. */
export const getDiscovery = ({ config }: Pick<Context, 'config'>) => {
  const body = JSON.stringify(
    discoveryDocument({
      issuer: config.url,
      ...(config.internal_url && { backchannel_url: config.internal_url }),
      scopes: ['openid', 'profile', 'email'],
      id_token_algs: signingAlgs,
      acr_values: supportedAcrs(config),
      ui_locales: locales,
    }),
  )
  const document = { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` }
  return ({ request }: { request: Request }): Response => answer(request, document)
}

/** JSON Web Key Set: https://www.rfc-editor.org/rfc/rfc7517#section-5 */
export const getKeySet =
  ({ keys }: Pick<Context, 'keys'>) =>
  async ({ request }: { request: Request }): Promise<Response> =>
    answer(request, await keys.published())
