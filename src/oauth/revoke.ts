import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { readForm } from '#src/http/body.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { parseClientAuth } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { parseForm, requireParameter } from '#src/protocol/oauth/parameters.ts'
import { findRefreshGrant, type RefreshGrant } from '#src/sessions/refresh-tokens.ts'
import { releaseSessions } from '#src/sessions/service.ts'
import { asClient, CredentialError, throttled } from './client-authentication.ts'
import { type EndpointCall, endpoint } from './endpoint.ts'

/**
 * Handles token revocation: https://www.rfc-editor.org/rfc/rfc7009#section-2. The answer is 200 with an empty
 * body, even when the request is refused, because clients cannot handle a refusal in a useful way (section
 * 2.2). Only a failure of the server gives an error status, such as 503 when the store cannot write.
 */
export const postRevoke = (context: Context) =>
  endpoint(context, async endpoint_call => {
    try {
      await revoke(context, endpoint_call)
    } catch (error) {
      if (!isRefusal(error)) throw error
    }
    return new Response(null, {
      headers: { 'cache-control': 'no-store', pragma: 'no-cache', vary: 'Origin' },
    })
  })

const isRefusal = (error: unknown): boolean =>
  error instanceof OAuthError || (error instanceof AppError && error.status < 500)

const revoke = async (context: Context, endpoint_call: EndpointCall): Promise<void> => {
  const { call } = endpoint_call
  const form = parseForm(await readForm(call.request))
  endpoint_call.client_id = form.get('client_id')
  const presented = parseClientAuth(call.request.headers.get('authorization'), form)
  endpoint_call.client_id = presented?.client_id
  const token = requireParameter(form, 'token')
  // A token with a dot is an access token, because refresh tokens have no dot. An access token cannot be
  // revoked, because services verify it without a call to this server. The call ends before the client is
  // authenticated and the token is looked up, because sending an access token must not count as a wrong
  // guess.
  if (token.includes('.')) return
  const attempt = async () => {
    const grant = await context.store.read(q => findRefreshGrant(context, q, token))
    if (!grant) throw new CredentialError('invalid_grant')
    if (grant === 'gone') return
    if (presented && presented.client_id !== grant.client_id) return
    endpoint_call.client_id = grant.client_id
    await release(context, grant, call)
  }
  // A call without client authentication is accepted, because a stranger with a stolen token can do nothing
  // here except end the session of the token. If the call contains a secret or an assertion, it must be
  // correct.
  await (presented && presented.method !== 'none'
    ? asClient(context, call, presented, attempt, {
        place: 'either',
        asked: { grant_type: 'refresh_token', refresh_token: token },
      })
    : throttled(context, call, undefined, attempt))
}

/**
 * Ends the session. A used token is accepted too, so that a client that never received the next token can
 * sign the user out. Access tokens of the session stay valid until they expire: RFC 7009 section 2.1 asks
 * only servers that support the revocation of access tokens to invalidate them. The login in the
 * browser continues, because the client has revoked only its own refresh token.
 */
const release = (
  context: Context,
  { id: session_id, user_id, client_id, email, organization_id }: RefreshGrant,
  client_info: ClientInfo,
): Promise<void> =>
  context.store.write(async tx => {
    const ended = await releaseSessions(context, tx, { session_id })
    if (ended.length === 0) return
    await record(context, tx, {
      type: 'token.revoked',
      actor: { id: user_id, email },
      target_id: session_id,
      target_type: 'session',
      organization_id,
      client_info: client_info,
      metadata: { client_id },
      subject_id: user_id,
    })
  })
