import type { Context } from '#src/context.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { AppError } from '#src/lib/app-error.ts'
import { findHolder, type Holder } from '#src/sessions/store.ts'
import { type AccessToken, verifyAccessToken } from '#src/tokens/verify.ts'

/** An access token that is still good, with the user whom it speaks for; a client's own token has none. */
export interface LiveToken extends AccessToken {
  holder: Holder | undefined
}

/**
 * Whether this server honours a token now: undefined when it
 * is none of ours, or its session was revoked, its user deleted or disabled, its organization deleted.
 */
export const findLiveToken = async (context: Context, text: string): Promise<LiveToken | undefined> => {
  const token = await verifyAccessToken(context, text)
  if (!token) return undefined
  const { user, organization_id } = token
  if (user) {
    const holder = await context.store.read(q => findHolder(q, user))
    return holder && { ...token, holder }
  }
  return (await findOrganization(context.store, organization_id)) && { ...token, holder: undefined }
}

const MAX_LENGTH = 8192

/** 401: there is no good token. An error code only for who sent one: https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
const unauthorized = (description: string, wasSent: boolean): AppError =>
  new AppError('invalid_token', description, {
    headers: { 'www-authenticate': wasSent ? 'Bearer error="invalid_token"' : 'Bearer' },
  })

/** The token of the Authorization header, the only place where one is taken from; undefined when none is there. */
const readBearer = (request: Request): string | undefined => {
  const header = request.headers.get('authorization')
  if (header === null || !/^bearer(?: |$)/i.test(header)) return undefined
  const [, token] = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header) ?? []
  if (token === undefined || token.length > MAX_LENGTH)
    throw unauthorized('The access token is malformed.', true)
  return token
}

/**
 * The live token that a request carries: 401 without one, 400 when it carries one in a second way too
 * (`form`, the parameters of the body, where an endpoint has them). https://www.rfc-editor.org/rfc/rfc6750#section-2
 */
export const authenticateBearer = async (
  context: Context,
  request: Request,
  form?: ReadonlyMap<string, string>,
): Promise<LiveToken> => {
  const text = readBearer(request)
  if (text === undefined)
    throw unauthorized('An access token is needed in the Authorization header, as Bearer.', false)
  if (form?.has('access_token') || /[?&]access_token=/.test(request.url))
    throw new AppError('invalid_request', 'The access token was sent in two ways.', {
      headers: { 'www-authenticate': 'Bearer error="invalid_request"' },
    })
  const token = await findLiveToken(context, text)
  if (!token) throw noLongerGood()
  return token
}

/** 401 for a token that is not honoured, or not any more. */
export const noLongerGood = (): AppError =>
  unauthorized('The access token is not valid, has expired or was revoked.', true)

/** The client that a token says it is for, unverified: pages of it may read why the token was refused. */
export const claimedClient = (request: Request): string | undefined => {
  const payload = request.headers.get('authorization')?.split('.')[1] ?? ''
  try {
    const { client_id } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return typeof client_id === 'string' ? client_id : undefined
  } catch {
    return undefined
  }
}
