import type { Context } from '#src/context.ts'
import { errorBody, json, jsonHeaders, refusalFor } from '#src/http/answer.ts'
import { type Call, callOf } from '#src/http/call.ts'
import { allowOrigin } from '#src/http/cors.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'

/** Headers of JSON answers; token responses need them: https://www.rfc-editor.org/rfc/rfc6749#section-5.1 */
const OAUTH_HEADERS = jsonHeaders({ pragma: 'no-cache', vary: 'Origin' })

/** Returns a JSON response of an OAuth endpoint. Caches do not store the response. */
export const oauthJson = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  json(body, status, headers, OAUTH_HEADERS)

/** A request at an endpoint that web pages of clients may call. */
export interface EndpointCall {
  readonly call: Call
  /** The client whose pages may read the answer; undefined until the client is known. */
  client_id?: string | undefined
}

/**
 * Wraps an OAuth endpoint: answers errors with the JSON body of RFC 6749 section 5.2, and adds the CORS
 * headers.
 */
export const endpoint =
  (context: Context, handle: (endpoint_call: EndpointCall) => Promise<Response>) =>
  async ({ request }: { request: Request }): Promise<Response> => {
    const endpoint_call: EndpointCall = { call: callOf(request) }
    let answer: Response
    try {
      answer = await handle(endpoint_call)
    } catch (error) {
      answer = oauthError(context, endpoint_call.call, error)
    }
    return allowOrigin(context, request, answer, endpoint_call.client_id)
  }

const oauthError = (context: Context, call: Call, error: unknown): Response => {
  if (error instanceof OAuthError && error.status < 500) {
    const { code, description, status } = error
    const body = { error: code, error_description: description, status, request_id: call.request_id }
    return oauthJson(body, status, challenge(call, error))
  }
  const refusal = refusalFor(context, call, error, 'OAuth endpoint failed')
  return oauthJson(errorBody(call, refusal), refusal.status, refusal.headers)
}

/**
 * Returns the WWW-Authenticate header for a client that tried HTTP authentication:
 * https://www.rfc-editor.org/rfc/rfc6749#section-5.2
 */
const challenge = (call: Call, error: OAuthError): Record<string, string> =>
  error.code === 'invalid_client' && call.request.headers.has('authorization')
    ? { 'www-authenticate': 'Basic realm="gatehouse"' }
    : {}
