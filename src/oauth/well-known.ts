import { hash } from 'node:crypto'
import type { Context, Core, Issuer, PublishedKeys } from '#src/context.ts'
import { type AcceptedClients, acceptedClients } from '#src/directory/organizations/store.ts'
import { preflight } from '#src/http/cors.ts'
import { locales } from '#src/http/locale.ts'
import { mount } from '#src/http/routes.ts'
import { discoveryDocument } from '#src/protocol/oidc/discovery.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import { supportedAcrs } from '#src/sign-in/passkeys.ts'
import { orLast } from '#src/storage/or-last.ts'

/**
 * Seconds for which caches keep these documents. A rotation publishes the new key 15 minutes before the key
 * signs (tokens/rotation.ts), so each cache has the new key when the key begins to sign. Outside development
 * mode a key signs at once in two cases only: it is the first key of its algorithm, or it replaces a revoked
 * key.
 */
const MAX_AGE = 300

const headersOf = ({ etag }: PublishedKeys): Headers =>
  new Headers({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': `public, max-age=${MAX_AGE}`,
    'access-control-allow-origin': '*',
    etag,
  })

const NONE_ACCEPTED: AcceptedClients = { registers: false, documents: false }

const matches = (request: Request, etag: string): boolean => {
  const known = request.headers.get('if-none-match')
  return (
    known !== null && (known === '*' || known.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag))
  )
}

const answer = (request: Request, { body, etag }: PublishedKeys, headers: Headers): Response =>
  matches(request, etag) ? new Response(null, { status: 304, headers }) : new Response(body, { headers })

/**
 * Serves the same document on both paths: OpenID Connect Discovery 1.0 section 3, RFC 8414 section 2. A
 * caller that uses the host of `internal_url` may be unable to reach the public address. In the document for
 * such a caller, the endpoints that servers call therefore have the host of `internal_url`.
 */
const getDiscovery = ({ config, store }: Core) => {
  const documentFor = (backchannel_url: string, registers: boolean, reads_documents: boolean) => {
    const body = JSON.stringify(
      discoveryDocument({
        issuer: config.url,
        backchannel_url,
        registers,
        reads_documents,
        scopes: ['openid', 'profile', 'email', 'phone', 'address', 'groups', 'roles'],
        id_token_algs: signingAlgs,
        acr_values: supportedAcrs(config),
        ui_locales: locales,
      }),
    )
    const document = { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` }
    const headers = headersOf(document)
    if (config.internal_url) headers.set('vary', 'Host')
    return { document, headers }
  }
  /**
   * Builds one document for each combination of two settings: whether clients may register themselves, and
   * whether the server accepts clients' metadata documents.
   */
  const each = (url: string) =>
    [
      documentFor(url, false, false),
      documentFor(url, true, false),
      documentFor(url, false, true),
      documentFor(url, true, true),
    ] as const
  const shown = { documents: each(config.url) }
  const internal = config.internal_url && {
    host: new URL(config.internal_url).host,
    documents: each(config.internal_url),
  }
  let last = NONE_ACCEPTED
  return ({ request }: { request: Request }): Response | Promise<Response> => {
    const known = internal && request.headers.get('host') === internal.host ? internal : shown
    const respond = (accepted: AcceptedClients): Response => {
      last = accepted
      const { registers, documents } = accepted
      const { document, headers } = known.documents[documents ? (registers ? 3 : 2) : registers ? 1 : 0]
      return answer(request, document, headers)
    }
    const accepted = acceptedClients.peek(store, '')
    // The document is also served while the database cannot be read, because the issuer and the keys are
    // known without the database.
    return accepted ? respond(accepted) : orLast(acceptedClients(store, ''), last).then(respond)
  }
}

/** Answers with the JSON Web Key Set: https://www.rfc-editor.org/rfc/rfc7517#section-5 */
const getKeySet = ({ keys }: Issuer) => {
  // The headers are cached, because building them takes a tenth of the time of an answer.
  let document: PublishedKeys | undefined
  let headers = new Headers()
  return ({ request }: { request: Request }): Response | Promise<Response> => {
    const respond = (published: PublishedKeys): Response => {
      if (published !== document) headers = headersOf(published)
      document = published
      return answer(request, published, headers)
    }
    const published = keys.published()
    return published instanceof Promise ? published.then(respond) : respond(published)
  }
}

/** Returns the routes of the discovery documents and the key set. */
export const wellKnownRoutes = (context: Context) => {
  const discovery = getDiscovery(context)
  return mount({
    'GET /.well-known/openid-configuration': discovery,
    'OPTIONS /.well-known/openid-configuration': preflight('GET'),
    'GET /.well-known/oauth-authorization-server': discovery,
    'OPTIONS /.well-known/oauth-authorization-server': preflight('GET'),
    'GET /.well-known/jwks.json': getKeySet(context),
    'OPTIONS /.well-known/jwks.json': preflight('GET'),
  })
}
