import type { Context } from '#src/context.ts'
import { describeScope } from '#src/directory/apis/texts.ts'
import { checkedName, isMisleading } from '#src/directory/clients/names.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { host, isOnDevice } from '#src/protocol/oauth/redirect-uri.ts'
import { apisOffering } from '#src/protocol/oauth/resource.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import { offeredScopes, shownScopes } from './consent-scopes.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { type BrowserSession, type StoredFlow, stepToken } from './flow.ts'
import { exitOf, show } from './step-pages.ts'

/**
 * Returns a client as the consent page shows it. If the name of a dynamic client is misleading, a host is
 * shown instead (`checkedName`), because anyone may register any name.
 */
const consentClient = async (context: Context, { request, client, organization }: StoredFlow) => {
  if (!client) return { name: request.client_id }
  const { client_id, description, name, from_document } = client
  const { logo, client_uri, policy_uri, tos_uri } = client
  if (!isDynamic(client))
    return {
      name: name || client_id,
      description,
      ...(logo && { logo }),
      links: { client_uri, policy_uri, tos_uri },
    }
  const isHidden = await isMisleading(context, organization, name)
  return {
    name: isHidden ? checkedName(client, request.redirect_uri) : name,
    ...(from_document && { host: host(client_id) }),
    unverified: isOnDevice(request.redirect_uri) ? ('loopback' as const) : ('web' as const),
  }
}

/**
 * Asks the person to approve or deny the requested scopes that this person can grant. `isConsentDue`
 * (protocol/oauth/next-step.ts) decides when the page is shown. If the user granted some of the scopes
 * before, the list includes these scopes too, because the token contains them.
 */
export const consentPage = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  login: BrowserLogin,
): Promise<Response> => {
  const { request } = flow
  return show(
    context,
    'consent',
    browser,
    flow,
    {
      action: '/oauth/consent',
      client: await consentClient(context, flow),
      user: pageUserOf(login),
      scopes: [
        ...flow.apis.map(({ identifier, name }) => ({ name: identifier, description: name })),
        ...offeredScopes(flow, login.held).map(name => ({
          name,
          ...describeScope(apisOffering(flow.apis, name, login.held) ?? [], name, browser.call.locale),
        })),
      ],
      ...exitOf(context, flow, login.id),
      fields: {
        client_id: request.client_id,
        scope: formatScope(request.scopes),
        state: request.state ?? '',
        code_challenge: request.code_challenge,
        redirect_uri: request.redirect_uri,
        csrf_token: stepToken(context, flow, 'consent', login.id, shownScopes(flow, login.held)),
        ...(request.nonce !== undefined && { nonce: request.nonce }),
        request: flow.handle,
      },
    },
    undefined,
  )
}
