import type { Context } from '#src/context.ts'
import { clientOfRequest } from '#src/directory/clients/store.ts'
import { letsIn } from '#src/directory/organizations/dynamic-clients.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { asAppError, seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { queryOf } from '#src/http/query.ts'
import { charge } from '#src/http/rate-limits.ts'
import { CONSOLE_CLIENT, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { parseAuthorizeRequest, parseClientId, parseTarget } from '#src/protocol/oauth/authorize-request.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { checkRegular, parseParameters } from '#src/protocol/oauth/parameters.ts'
import { readResources } from '#src/protocol/oauth/resource.ts'
import { verifyIdTokenHint } from '#src/tokens/verify.ts'
import { advance } from './advance.ts'
import { type Addressee, answerError } from './answer.ts'
import { apisOf, browserSessionOf, type Flow, flowOf } from './flow.ts'
import { requestedOrganization } from './login-organization.ts'
import { publicError, type Refusal, refuseRequest } from './refused-request.ts'
import { consumeStoredPost, type FlowRequest, insertStoredPost } from './store.ts'

/** Handles the authorization endpoint: https://www.rfc-editor.org/rfc/rfc6749#section-3.1 */
export const getAuthorize =
  (context: Context) =>
  (call: Call): Promise<Response> =>
    handleAuthorizationRequest(context, call, [queryOf(call.request)], flow =>
      advance(context, browserSessionOf(context, call), flow, 'get'),
    )

/**
 * Handles an authorization request that any site posts as a form. The browser omits SameSite=Lax cookies
 * from a cross-site POST, so a valid request is stored and replayed by a GET on this origin.
 */
export const postAuthorize =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const sources = [queryOf(call.request), await readForm(call.request)]
    return handleAuthorizationRequest(context, call, sources, async ({ request, organization }) => {
      const who = { ip_address: call.ip_address, organization_id: organization.id }
      const body = JSON.stringify(request)
      charge(context, { ...who, kind: 'stored_post', units: Math.ceil(body.length / 1_024) })
      charge(context, { ...who, kind: 'commit' })
      const handle = newSecret()
      const now = context.clock.now()
      await context.store.write(tx =>
        insertStoredPost(tx, { handle_hash: hashSecret(handle), kind: 'authorize', body, now }),
      )
      return seeOther(`/oauth/authorize/replay?handle=${handle}`)
    })
  }

/** Continues an authorization request that another site posted. Each stored request can be replayed once. */
export const getStoredPost =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const handle_hash = hashSecret(new URLSearchParams(queryOf(call.request)).get('handle') ?? '')
    const now = context.clock.now()
    const body = await context.store.write(tx =>
      consumeStoredPost(tx, { handle_hash, kind: 'authorize', now }),
    )
    if (body === undefined) throw new PageError('expired', 400)
    const request = JSON.parse(body) as FlowRequest
    call.ui_locales = request.ui_locales
    const flow = await flowOf(context, request)
    // The handle works once, so the browser is redirected to a page that can be reloaded.
    return redirectingErrors(context, call, flow, () =>
      advance(context, browserSessionOf(context, call), flow, 'post'),
    )
  }

/**
 * Handles an authorization request. Errors are pages until the redirect URI is verified. Afterwards they go
 * to the client, with the exceptions that {@link redirectingErrors} names.
 */
export const handleAuthorizationRequest = async (
  context: Context,
  call: Call,
  sources: readonly string[],
  proceed: (flow: Flow) => Promise<Response>,
): Promise<Response> => {
  const { parameters, client, target } = await readTarget(context, call, sources)
  return redirectingErrors(context, call, { request: target, client }, async () => {
    checkRegular(parameters)
    const apis = await apisOf(context, client, readResources(parameters.values))
    const parsed = parseAuthorizeRequest(parameters, client, target, apis)
    const organization_id = await requestedOrganization(context, call, parsed)
    const { id_token_hint, ...request } = { ...parsed, organization_id }
    const organization = await findOrganization(context.store, organization_id as OrganizationId)
    if (!organization) throw new OAuthError('invalid_request', 'The parameter organization_id is invalid.')
    if (!letsIn(organization, client))
      throw new OAuthError('access_denied', 'The organization does not allow this client.')
    const hinted_user_id =
      id_token_hint === undefined ? undefined : await hintedUser(context, request.client_id, id_token_hint)
    const flow = { request: { ...request, hinted_user_id }, client, organization, apis }
    return proceed({ ...flow, pending: undefined, approved: false })
  })
}

/**
 * Returns the parameters, the client and the target of a request. `sources` are the raw query strings and
 * forms of the request.
 *
 * @throws PageError 400 for each refusal, because the redirect URI is not verified yet
 */
const readTarget = async (context: Context, call: Call, sources: readonly string[]) => {
  const refuse = (...why: Refusal) => refuseRequest(context, call, ...why)
  const parameters = read(() => parseParameters(...sources))
  if (!parameters) throw await refuse('malformed')
  call.ui_locales = parameters.values.get('ui_locales')?.split(' ') ?? []
  const client_id = read(() => parseClientId(parameters))
  if (client_id === undefined) throw await refuse('client_id_invalid')
  const redirect_uri = parameters.values.get('redirect_uri')
  const client = await clientOfRequest(context, client_id, redirect_uri)
  if (!client) throw await refuse('unknown_client', { client_id, redirect_uri })
  // Only a navigation gets a code for the console. Otherwise a script could get a code unnoticed, because
  // the user is not asked for consent to the console.
  if (client_id === CONSOLE_CLIENT && call.request.headers.get('sec-fetch-mode') !== 'navigate')
    throw await refuse('not_a_navigation', { client_id, redirect_uri })
  const target = read(() => parseTarget(parameters, client))
  if (target) return { parameters, client, target }
  const reason = redirect_uri === undefined ? 'redirect_uri_invalid' : 'redirect_uri_not_registered'
  throw await refuse(reason, { client_id, redirect_uri, client })
}

/** Returns the result of `parse`. Returns undefined when the value is invalid. */
const read = <T>(parse: () => T): T | undefined => {
  try {
    return parse()
  } catch (error) {
    if (error instanceof OAuthError) return undefined
    throw error
  }
}

const hintedUser = async (context: Context, client_id: string, hint: string): Promise<UserId> => {
  const known = await verifyIdTokenHint(context, hint, client_id)
  if (!known) throw new OAuthError('invalid_request', 'The parameter id_token_hint is invalid.')
  return `usr_${known.sub}`
}

/**
 * Runs `body` and sends its errors, including server errors, to the client. Three kinds of errors become
 * pages instead: a PageError, a spent budget, and each error of a dynamic client. A redirect cannot carry the
 * 429 and `Retry-After` of a spent budget. The redirect URI of a dynamic client may be an attacker's.
 * https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1
 */
const redirectingErrors = async (
  context: Context,
  call: Call,
  addressee: Addressee,
  body: () => Promise<Response>,
): Promise<Response> => {
  try {
    return await body()
  } catch (error) {
    if (error instanceof PageError) throw error
    const { client, request } = addressee
    if (client && isDynamic(client)) throw await refuseDynamic(context, call, client, request, error)
    if (error instanceof OAuthError)
      return answerError(context, call, addressee, publicError(context, call, addressee.client, error))
    const refusal = asAppError(error)
    if (refusal.code === 'rate_limited') throw refusal
    context.log.error({ request_id: call.request_id, err: refusal.cause ?? refusal }, 'authorize failed')
    const code = refusal.code === 'temporarily_unavailable' ? refusal.code : 'server_error'
    return answerError(context, call, addressee, new OAuthError(code))
  }
}

/**
 * Returns the error to throw for a refused request of a dynamic client. Nothing is sent to the redirect URI
 * of the client, which may be an attacker's. `advance` does the same for a refused step.
 */
const refuseDynamic = async (
  context: Context,
  call: Call,
  { client_id }: { client_id: string },
  { redirect_uri }: { redirect_uri: string },
  error: unknown,
): Promise<unknown> => {
  if (!(error instanceof OAuthError)) return error
  const reason = error.code === 'access_denied' ? 'client_kept_out' : 'not_redirected'
  return refuseRequest(context, call, reason, { client_id, redirect_uri, error })
}
