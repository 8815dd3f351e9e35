import type { Context } from '#src/context.ts'
import { readForm } from '#src/http/body.ts'
import { parseClientAuth } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import {
  checkGrantType,
  checkTokenQuery,
  parseTokenRequest,
  type TokenRequest,
} from '#src/protocol/oauth/token-request.ts'
import { asClient } from './client-authentication.ts'
import { endpoint, oauthJson } from './endpoint.ts'
import { authorizationCode } from './grants/authorization-code.ts'
import { clientCredentials } from './grants/client-credentials.ts'
import type { Grant, GrantCall, TokenAnswer } from './grants/grant.ts'
import { refreshToken } from './grants/refresh-token.ts'

const grants: { [T in TokenRequest['grant_type']]: Grant<T> } = {
  authorization_code: authorizationCode,
  refresh_token: refreshToken,
  client_credentials: clientCredentials,
}

/**
 * Runs the grant of a request. The type of `grants` pairs each request with its grant. TypeScript cannot
 * follow this pairing across the union, so the grant is cast.
 */
const run = (context: Context, call: GrantCall<TokenRequest>): Promise<TokenAnswer> => {
  const grant = grants[call.request.grant_type] as Grant<TokenRequest['grant_type']>
  return grant(context, call)
}

/** Handles the token endpoint: https://www.rfc-editor.org/rfc/rfc6749#section-3.2 */
export const postToken = (context: Context) =>
  endpoint(context, async endpoint_call => {
    const { call } = endpoint_call
    const { url } = call.request
    if (url.includes('?')) checkTokenQuery(url.slice(url.indexOf('?') + 1))
    const form = parseForm(await readForm(call.request))
    endpoint_call.client_id = form.get('client_id')
    const presented = parseClientAuth(call.request.headers.get('authorization'), form)
    if (!presented) throw new OAuthError('invalid_request', 'The parameter client_id is missing.')
    endpoint_call.client_id = presented.client_id
    const request = parseTokenRequest(form)
    return asClient(
      context,
      call,
      presented,
      client => {
        checkGrantType(client, request.grant_type)
        return run(context, { client, request, client_info: call }).then(body => oauthJson(body))
      },
      { asked: request },
    )
  })
