import { record } from '#src/audit/record.ts'
import { mappingOfApi } from '#src/oauth/further-claims.ts'
import { scopesAt } from '#src/protocol/oauth/resource.ts'
import { formatScope, grantScopes } from '#src/protocol/oauth/scope.ts'
import { mappedClaims } from '#src/protocol/oidc/claim-mapping.ts'
import { clientTokenClaims } from '#src/protocol/oidc/claims.ts'
import { issueToken } from '#src/tokens/issue.ts'
import { accessTokenForm, type Grant, requireApi } from './grant.ts'

/**
 * Issues a client's own token: https://www.rfc-editor.org/rfc/rfc6749#section-4.4. The token has no user and
 * no session. The answer has no refresh token, because the client can ask for a new token at any time.
 */
export const clientCredentials: Grant<'client_credentials'> = async (
  context,
  { client, request, client_info },
) => {
  const { client_id, organization_id } = client
  const api =
    request.resource === undefined
      ? undefined
      : await context.store.read(q => requireApi(q, client, request.resource ?? '', organization_id))
  const allowed = api ? (scopesAt(api, client) ?? []) : client.scopes
  const scopes = grantScopes(request.scopes, allowed)
  const scope = formatScope(scopes)
  await context.store.write(tx =>
    record(context, tx, {
      type: 'token.issued',
      actor: { id: client_id, email: null },
      target_id: client_id,
      target_type: 'client',
      organization_id,
      client_info,
      metadata: {
        client_id,
        grant_type: request.grant_type,
        scope,
        ...(api && { resource: api.identifier }),
      },
    }),
  )
  const mapping = { ...mappingOfApi(api, scopes), ...client.claims }
  const further = mappedClaims(mapping, scopes, { client, groups: [], roles: [] })
  const { token, expires_in } = await issueToken(context, {
    ...accessTokenForm(context, client, api),
    claims: issued =>
      clientTokenClaims({
        ...issued,
        client_id,
        audience: api?.identifier,
        organization_id,
        scopes,
        further,
      }),
  })
  return { access_token: token, token_type: 'Bearer', expires_in, scope }
}
