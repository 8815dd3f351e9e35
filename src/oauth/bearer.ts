import type { Context } from '#src/context.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { AppError } from '#src/lib/app-error.ts'
import { findHolder, type Holder } from '#src/sessions/store.ts'
import { type AccessToken, verifyAccessToken } from '#src/tokens/verify.ts'
import { isKeptOut } from './grants/grant.ts'

/** A valid access token and its user; `holder` is undefined for a client's own token. */
export interface LiveToken extends AccessToken {
  holder: Holder | undefined
  /** The client of a user's token; undefined after the client was deleted. */
  client?: Client | undefined
}

/**
 * Returns a valid access token with its user. Returns undefined for any other text. The signature, issuer and
 * expiry must be valid. With the audience `own`, the token must not be for an API. The organization must
 * exist. For a user's token, the session must not be revoked, and the user must be enabled and admitted by
 * the client. The organization must still allow the client: a block revokes only active sessions, and tokens
 * of a session that the client ended before the block would otherwise stay valid. All of this is looked up at
 * each call, because a signature does not show later changes.
 */
export const findLiveToken = async (
  context: Context,
  text: string,
  audience: 'own' | 'any' = 'own',
): Promise<LiveToken | undefined> => {
  const token = await verifyAccessToken(context, text, audience)
  if (!token) return undefined
  const { user, organization_id } = token
  if (user) {
    const client = await findClient(context, token.client_id)
    const holder = await context.store.read(async q =>
      client &&
      ((await isKeptOut(q, client, organization_id)) || !(await isAdmitted(q, client, user.user_id)))
        ? undefined
        : findHolder(q, user),
    )
    return holder && { ...token, holder, client }
  }
  return (await findOrganization(context.store, organization_id)) && { ...token, holder: undefined }
}

/**
 * Returns the 401 for a request without a valid token. The WWW-Authenticate header names the error only when
 * the request has a token: https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export const unauthorized = (description: string, wasSent: boolean): AppError =>
  new AppError('invalid_token', description, {
    headers: { 'www-authenticate': wasSent ? 'Bearer error="invalid_token"' : 'Bearer' },
  })

/**
 * Returns the token of the Authorization header. Returns undefined when the header is missing or has another
 * scheme than Bearer. No token is accepted in the query, because URLs end up in logs. The length is not
 * checked: the names of a user's roles make a token long, and the HTTP server accepts at most 16 KiB of
 * headers.
 *
 * @throws AppError 401 `invalid_token` for a malformed token
 */
const readBearer = (request: Request): string | undefined => {
  const header = request.headers.get('authorization')
  if (header === null || !/^bearer(?: |$)/i.test(header)) return undefined
  const [, token] = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header) ?? []
  if (token === undefined) throw unauthorized('The access token is malformed.', true)
  return token
}

/**
 * Returns the valid access token of a request: https://www.rfc-editor.org/rfc/rfc6750#section-2
 *
 * @param form parameters of the body, at an endpoint that accepts a body. An `access_token` among the
 * parameters is never accepted, because the RFC advises against it
 * @throws AppError 401 `invalid_token` when the request has no valid token, 400 `invalid_request` when the
 * token was sent in two ways
 */
export const authenticateBearer = async (
  context: Context,
  request: Request,
  form?: ReadonlyMap<string, string>,
): Promise<LiveToken> => {
  const text = readBearer(request)
  if (text === undefined)
    throw unauthorized('The access token is missing: send it as "Authorization: Bearer <token>".', false)
  if (form?.has('access_token') || /[?&]access_token=/.test(request.url))
    throw new AppError(
      'invalid_request',
      'The access token was sent in two ways. Send it in the Authorization header only.',
      { headers: { 'www-authenticate': 'Bearer error="invalid_request"' } },
    )
  const token = await findLiveToken(context, text)
  if (!token) throw noLongerGood()
  return token
}

/** Returns the 401 for a token that is invalid, expired or revoked. */
export const noLongerGood = (): AppError =>
  unauthorized('The access token is not valid, has expired or was revoked.', true)

/**
 * Returns the `client_id` of the token in the Authorization header. The token is not verified, because the
 * result only decides which client's pages may read the answer (CORS).
 */
export const claimedClient = (request: Request): string | undefined => {
  const payload = request.headers.get('authorization')?.split('.')[1] ?? ''
  try {
    const { client_id } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return typeof client_id === 'string' ? client_id : undefined
  } catch {
    return undefined
  }
}
