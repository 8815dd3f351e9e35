import { z } from 'zod'
import type { Caller, Context } from '#src/context.ts'
import { time } from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage, listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import { DOCUMENT_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { countDynamicClients, type DynamicClient, listDynamicClients } from './dynamic-store.ts'

const sources = ['registration', 'document'] as const

const DynamicClientAnswer = z
  .object({
    client_id: z.string().describe('Id of the client, or the URL of its metadata document.'),
    organization_id: z
      .string()
      .nullable()
      .describe(
        'Organization of the initial access token with which the client registered. Null for a client that used no such token.',
      ),
    source: z
      .enum(sources)
      .describe(
        '`registration`: the client registered itself. `document`: a metadata document describes the client.',
      ),
    name: z
      .string()
      .describe(
        'Name that the client gave itself; Gatehouse does not verify it. For a client without a name, this is the host of its metadata document or first redirect URI. If that URI is not http or https, this is its scheme.',
      ),
    redirect_uris: z.array(z.string()).describe('URIs to which authorization responses are sent.'),
    created_at: time
      .nullable()
      .describe(
        'Time of the registration, or of the first consent in any organization for the source `document`. Null for administrators of a tenant, except for clients that registered with an initial access token of the tenant.',
      ),
    changed_at: time
      .nullable()
      .describe(
        'Time of the last change of redirect URIs, keys or authentication methods; null if none of them has changed, and for administrators of a tenant, because it is the time of the first login afterwards in any organization.',
      ),
    last_used_at: time
      .nullable()
      .describe(
        'Time of the last consent or redeemed code in any organization, null until a user allows the client. Administrators of a tenant see it only for clients that registered with an initial access token of the tenant; it is null for others. The time is stored at most once a day, so the last use may be up to a day later. If a client registers again about 90 days after its last use, the time is moved forward, so that the client is kept for another hour.',
      ),
  })
  .meta({
    id: 'DynamicClient',
    description: 'A client that no administrator registered.',
    example: {
      client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
      organization_id: null,
      source: 'document',
      name: 'Claude Code',
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
      created_at: example.time,
      changed_at: null,
      last_used_at: example.time,
    },
  })

const ListDynamicClients = listQuery({
  organization_id: ofOrganization,
  source: z.enum(sources).optional().describe('Only clients of this source.'),
})
type ListDynamicClients = z.output<typeof ListDynamicClients>

/**
 * Returns a dynamic client in the form of the API. A caller within the organization `own` does not see when
 * users of other organizations used the client. `own` is undefined for a caller who sees all organizations.
 */
export const dynamicClientItem = (
  client: DynamicClient,
  own: OrganizationId | undefined,
): z.output<typeof DynamicClientAnswer> => {
  const source = client.client_id.startsWith(DOCUMENT_DYNAMIC) ? 'document' : 'registration'
  const isShared = own !== undefined && client.organization_id !== own
  return {
    client_id: client.client_id,
    organization_id: client.organization_id,
    source,
    name: client.name,
    redirect_uris: [...client.registration.redirect_uris],
    created_at: isShared ? null : iso(client.created_at),
    changed_at: isShared ? null : isoOrNull(client.changed_at),
    last_used_at: isShared ? null : isoOrNull(client.used_at),
  }
}

const list = (context: Context, caller: Caller, query: ListDynamicClients) => {
  const { order, source } = query
  const filter = { source, organization_id: scopeOf(caller, query.organization_id) }
  return answerPage(context, {
    name: 'dynamic-clients',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) => context.store.read(q => listDynamicClients(q, filter, { order, after, limit })),
    total: () => context.store.read(q => countDynamicClients(q, filter)),
    keyset: client => [client.created_at, client.client_id],
    item: client => dynamicClientItem(client, within(caller)),
  })
}

/** Returns the route that lists dynamic clients for administrators. */
export const dynamicClientRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listDynamicClients',
    method: 'GET',
    path: '/dynamic-clients',
    permission: 'clients:read',
    summary:
      'List clients that no administrator registered. With an organization: those that its users have allowed, and those that registered with its initial access tokens',
    query: ListDynamicClients,
    status: 200,
    answer: listOf('DynamicClientList', DynamicClientAnswer),
    handle: ({ caller, query }) => list(context, caller, query),
  }),
]
