import { recordAll } from '#src/audit/record.ts'
import type { Issuer } from '#src/context.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import { accessTokenClaims } from '#src/protocol/oidc/claims.ts'
import { sessionCreated } from '#src/sessions/service.ts'
import { createSession } from '#src/sessions/store.ts'
import { type IssuedToken, issueToken } from '#src/tokens/issue.ts'
import { furtherClaims } from './further-claims.ts'

/**
 * Issues an access token for a user who has not signed in. `gatehouse token` and development mode call this
 * function. The token belongs to a session, and an event records the token, so that an administrator can find
 * and revoke it.
 *
 * @param grant `lifetime` in seconds
 * @throws Error when the user is disabled or deleted
 */
export const issuePersonalToken = async (
  context: Issuer,
  grant: {
    user: Pick<UserRow, 'id' | 'organization_id'>
    client: Client
    scopes: readonly string[]
    lifetime: number
    client_info: ClientInfo
    grant_type: string
    /** Changes the claims. Only development mode passes this function. */
    change?: (claims: Record<string, unknown>) => Record<string, unknown>
  },
): Promise<IssuedToken> => {
  const { client, scopes, lifetime, client_info, grant_type, change = claims => claims } = grant
  const { client_id } = client
  const now = context.clock.now()
  const session_id = newId('sess', now)
  const { user, roles, further } = await context.store.write(async tx => {
    const user = await findUser(tx, grant.user.organization_id, grant.user.id)
    if (!user?.enabled) throw new Error('the user is disabled')
    const { id: user_id, email, organization_id } = user
    const scope = formatScope(scopes)
    const session = {
      id: session_id,
      refresh_hash: null,
      user_id,
      client_id,
      organization_id,
      login_id: newId('login', now),
      scope,
      ...{ ip_address: client_info.ip_address, user_agent: client_info.user_agent, location: '' },
      started_at: now,
      expires_at: now + lifetime * SECOND,
      ends_by: null,
    }
    await createSession(tx, session)
    await recordAll(context, tx, [
      sessionCreated({ ...session, email }),
      {
        type: 'token.issued',
        actor: { id: user_id, email },
        target_id: session_id,
        target_type: 'session',
        organization_id,
        client_info,
        metadata: { client_id, grant_type, scope },
      },
    ])
    const roles = await effectiveRoles(tx, user_id)
    const { mapped } = await furtherClaims(tx, client, user_id, scopes, { roles })
    return { user, roles, further: mapped }
  })
  return issueToken(context, {
    alg: client.access_token_signed_response_alg ?? context.config.access_token_alg,
    typ: client.access_token_typ,
    lifetime,
    claims: issued =>
      change(
        accessTokenClaims({
          ...issued,
          client_id,
          scopes,
          user,
          session_id,
          roles: roles.map(({ name }) => name),
          further,
        }),
      ),
  })
}
