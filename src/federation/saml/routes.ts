import type { Context } from '#src/context.ts'
import { findEnabledProviders } from '#src/directory/identity-providers/store.ts'
import type { IdentityProvider, SamlProvider } from '#src/directory/identity-providers/types.ts'
import { findOrganization, findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { handleCallback } from '#src/federation/callback.ts'
import { storePost, takeStoredPost } from '#src/federation/cross-site-post.ts'
import { CallbackError, checkCallbackLimit, refuseCallback } from '#src/federation/refusal.ts'
import { requireProvider, startUpstreamLogin } from '#src/federation/start-login.ts'
import { isPendingUpstream, soleParameter } from '#src/federation/upstream-request.ts'
import { json } from '#src/http/answer.ts'
import { readForm, SAML_BODY } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/rate-limits.ts'
import { mount } from '#src/http/routes.ts'
import { AppError } from '#src/lib/app-error.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type PageHandler, pageRoutes } from '#src/pages/page-routes.ts'
import {
  buildAuthnRequest,
  checkResponse,
  metadataOf,
  stateOf,
  summaryOf,
  verifySamlCallback,
} from './service-provider.ts'

/**
 * Returns the routes of the SAML service provider:
 * https://docs.oasis-open.org/security/saml/v2.0/saml-profiles-2.0-os.pdf section 4.1. Section 4.1.2 excludes
 * the redirect binding for responses. The server therefore never decompresses a message, and a small request
 * cannot grow in memory.
 */
export const samlRoutes = (context: Context) => {
  const at =
    (handle: (call: Call, provider: SamlProvider) => Promise<Response>): PageHandler =>
    async (call, { provider = '' }) =>
      handle(call, await requireProvider(context, provider, isSaml))
  return [
    ...mount({ 'GET /saml/providers': ({ request }) => list(context, new URL(request.url)) }),
    ...pageRoutes(context, {
      // The metadata is served even when the provider is disabled, because Gatehouse is registered at a
      // provider before the provider is enabled.
      'GET /saml/:provider/metadata': at(async (_call, provider) => xml(await metadataOf(context, provider))),
      'GET /saml/:provider/login': at((call, provider) =>
        startUpstreamLogin(context, call, provider, buildAuthnRequest(context)),
      ),
      'POST /saml/:provider/acs': at((call, provider) => postAcs(context, call, provider)),
      'GET /saml/:provider/acs/replay': at(async (call, provider) =>
        handleResponse(context, call, provider, await takeStoredPost(context, call)),
      ),
    }),
  ]
}

/**
 * Lists the SAML providers that the login page of an organization shows. The parameter `organization_id` (id
 * or slug) names the organization. If it is missing, the default organization is used. The list is empty for
 * an unknown organization.
 */
const list = async (context: Context, { searchParams }: URL): Promise<Response> => {
  const reference = searchParams.get('organization_id') ?? DEFAULT_ORGANIZATION
  const find = reference.startsWith('org_') ? findOrganization : findOrganizationBySlug
  const organization = await find(context.store, reference)
  const providers = organization ? await findEnabledProviders(context.store, organization.id) : []
  return json({
    data: providers.filter(({ type }) => type === 'saml').map(provider => summaryOf(context, provider)),
  })
}

const xml = (body: string): Response => new Response(body, { headers: { 'content-type': 'application/xml' } })

const isSaml = (provider: IdentityProvider): provider is SamlProvider => provider.type === 'saml'

/**
 * Maximum number of fields of a form that are read. The binding defines two fields. Parsing the 130,000
 * fields of the longest form would block the event loop for 20 ms.
 */
const MAX_FIELDS = 100

/**
 * Parses the form of the POST binding, and reports whether its RelayState names a pending upstream request to
 * this provider.
 */
const openForm = async (context: Context, provider: SamlProvider, body: string) => {
  const form = new URLSearchParams(body.split('&', MAX_FIELDS).join('&'))
  const relay_state = soleParameter(form, 'RelayState')
  const state = stateOf(relay_state)
  const isAnswer = await isPendingUpstream(context, { state, provider })
  return { encoded: soleParameter(form, 'SAMLResponse'), relay_state, state, isAnswer }
}

/**
 * Stores the response for the replay, because the browser sends no cookie with a cross-site POST. An
 * unsolicited response is verified before it is stored.
 */
const postAcs = async (context: Context, call: Call, provider: SamlProvider): Promise<Response> => {
  const refuse = (error: unknown) =>
    refuseCallback(
      context,
      call,
      provider,
      error instanceof CallbackError ? error : new CallbackError('saml_unreadable', { cause: error }),
    )
  const body = await readForm(call.request, SAML_BODY).catch(async error => {
    await checkCallbackLimit(context, call, provider)
    await refuse(error)
    throw error
  })
  const { encoded, state, isAnswer } = await openForm(context, provider, body)
  context.xml.check(provider.organization_id, call.ip_address)
  if (isAnswer) return storePost(context, call, provider, body, state)
  await checkCallbackLimit(context, call, provider)
  // An attacker's site could post a response that answers no request, and thus sign a visitor in as the
  // attacker.
  if (!provider.settings.allow_idp_initiated) throw await refuse(new CallbackError('unknown_state'))
  const { id } = await checkResponse(context, call, provider, encoded, undefined).catch(async error => {
    throw error instanceof AppError ? error : await refuse(error)
  })
  const { organization_id } = provider
  charge(context, { ip_address: call.ip_address, organization_id, kind: 'commit' })
  return storePost(context, call, provider, body, `${provider.id} ${id}`)
}

const handleResponse = async (
  context: Context,
  call: Call,
  provider: SamlProvider,
  body: string,
): Promise<Response> => {
  const { encoded, relay_state, state, isAnswer } = await openForm(context, provider, body)
  const isUnsolicited = !isAnswer && provider.settings.allow_idp_initiated
  return handleCallback(context, call, provider, {
    state: isUnsolicited ? undefined : state,
    prove: async upstream_request =>
      verifySamlCallback(
        context,
        provider,
        await checkResponse(
          context,
          call,
          provider,
          encoded,
          upstream_request && { ...upstream_request, relay_state },
        ),
      ),
  })
}
