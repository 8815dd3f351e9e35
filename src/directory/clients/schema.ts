import { z } from 'zod'
import { flag, integer, line, lines, oneOf, reference, set, time } from '#src/directory/fields.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { clientAuthMethods } from '#src/protocol/oauth/client-auth.ts'
import { checkRegistrable } from '#src/protocol/oauth/redirect-uri.ts'
import { isScopeToken } from '#src/protocol/oauth/scope.ts'
import { grantTypes } from '#src/protocol/oauth/token-request.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import type { Client as Row } from './store.ts'

export const clientTypes = ['confidential', 'public'] as const

/** The type and the grant that each kind of application implies: https://www.rfc-editor.org/rfc/rfc6749#section-2.1 */
export const clientKinds = {
  web: { type: 'confidential', grant: 'authorization_code' },
  spa: { type: 'public', grant: 'authorization_code' },
  native: { type: 'public', grant: 'authorization_code' },
  service: { type: 'confidential', grant: 'client_credentials' },
} as const
const kindNames = ['web', 'spa', 'native', 'service'] as const satisfies (keyof typeof clientKinds)[]

/** Client ids must never read as user ids in `sub`: https://www.rfc-editor.org/rfc/rfc9068#section-5 */
const client_id = z
  .string('A text of 3 to 128 characters.')
  .regex(/^[A-Za-z0-9._~:/-]{3,128}$/, '3 to 128 letters, digits and - . _ ~ : / are allowed.')
  .refine(text => text !== 'default' && !looksLikeId(text), 'It must not read as an id of the server.')

const uri = z.string('A URI.').superRefine((text, issues) => {
  const problem = checkRegistrable(text)
  if (problem) issues.addIssue({ code: 'custom', message: `A redirect URI ${problem}.` })
})

const isOrigin = (text: string): boolean => /^https?:/.test(text) && URL.parse(text)?.origin === text

const web_origin = z
  .string('An origin such as https://app.example.com.')
  .max(255, 'At most 255 characters.')
  .refine(
    text => isOrigin(text) && !text.includes('*'),
    'An http or https origin such as https://app.example.com, without path, slash at the end or wildcard.',
  )

const scope = z
  .string('A scope.')
  .max(128, 'At most 128 characters.')
  .refine(
    text => isScopeToken(text) && text !== '*',
    'A scope is printable ASCII without spaces, quotes and backslashes, and not *.',
  )

const alg = oneOf(signingAlgs).nullable()

export const writable = {
  name: line(128, 1),
  description: lines(1000),
  /** null: not chosen. */
  kind: oneOf(kindNames).nullable(),
  redirect_uris: set(uri, 100),
  post_logout_redirect_uris: set(uri, 100),
  web_origins: set(web_origin, 100),
  grant_types: set(oneOf(grantTypes), 3),
  scopes: set(scope, 200),
  token_endpoint_auth_method: oneOf(clientAuthMethods),
  access_token_ttl: integer(60, DAY / SECOND),
  refresh_token_ttl: integer(300, (365 * DAY) / SECOND),
  capabilities: set(oneOf(['token_introspection', 'cross_organization']), 2),
  consent_required: flag,
  /** null means the server's default. */
  id_token_signed_response_alg: alg,
  access_token_signed_response_alg: alg,
  access_token_typ: oneOf(['at+jwt', 'JWT']),
  refresh_token_reuse_window: integer(0, 30),
}

export const CreateClient = z.strictObject({
  client_id,
  name: writable.name,
  description: writable.description.default(''),
  type: oneOf(clientTypes),
  kind: writable.kind.default(null),
  organization_id: reference.optional(),
  redirect_uris: writable.redirect_uris.default([]),
  post_logout_redirect_uris: writable.post_logout_redirect_uris.default([]),
  web_origins: writable.web_origins.default([]),
  grant_types: writable.grant_types,
  scopes: writable.scopes,
  /** Default: `client_secret_basic`, for public clients `none`. */
  token_endpoint_auth_method: writable.token_endpoint_auth_method.optional(),
  access_token_ttl: writable.access_token_ttl.default(3600),
  refresh_token_ttl: writable.refresh_token_ttl.default(2_592_000),
  capabilities: writable.capabilities.default([]),
  consent_required: writable.consent_required.default(true),
  id_token_signed_response_alg: alg.default(null),
  access_token_signed_response_alg: alg.default(null),
  access_token_typ: writable.access_token_typ.default('at+jwt'),
  refresh_token_reuse_window: writable.refresh_token_reuse_window.default(0),
})
export type CreateClient = z.output<typeof CreateClient>

export const UpdateClient = z.strictObject({
  ...z.object(writable).partial().shape,
  client_id: z.string().optional(),
  type: z.string().optional(),
  organization_id: z.string().optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
})
export type UpdateClient = z.output<typeof UpdateClient>

export const ClientAnswer = z.object({
  client_id: z.string(),
  name: z.string(),
  description: z.string(),
  type: z.enum(clientTypes),
  kind: z.enum(kindNames).nullable(),
  organization_id: z.string(),
  redirect_uris: z.array(z.string()),
  post_logout_redirect_uris: z.array(z.string()),
  web_origins: z.array(z.string()),
  grant_types: z.array(z.string()),
  scopes: z.array(z.string()),
  token_endpoint_auth_method: z.enum(clientAuthMethods),
  access_token_ttl: z.int(),
  refresh_token_ttl: z.int(),
  capabilities: z.array(z.string()),
  consent_required: z.boolean(),
  id_token_signed_response_alg: z.string().nullable(),
  access_token_signed_response_alg: z.string().nullable(),
  access_token_typ: z.string(),
  refresh_token_reuse_window: z.int(),
  created_at: time,
  updated_at: time,
})

/** The only answer with the secret of a confidential client: the server stores its hash. */
export const CreatedClient = ClientAnswer.extend({ client_secret: z.string().optional() })

export const ClientSecret = z.object({ client_id: z.string(), client_secret: z.string() })

export const clientAnswer = ({ secret_hash: _, ...client }: Row): z.output<typeof ClientAnswer> => ({
  ...client,
  created_at: iso(client.created_at),
  updated_at: iso(client.updated_at),
})

const ClientItem = ClientAnswer.pick({
  client_id: true,
  name: true,
  type: true,
  kind: true,
  organization_id: true,
  grant_types: true,
  scopes: true,
  created_at: true,
  updated_at: true,
})

export const clientItem = (client: Row): z.output<typeof ClientItem> => ({
  client_id: client.client_id,
  name: client.name,
  type: client.type,
  kind: client.kind,
  organization_id: client.organization_id,
  grant_types: client.grant_types,
  scopes: client.scopes,
  created_at: iso(client.created_at),
  updated_at: iso(client.updated_at),
})

export const ListClients = listQuery({
  type: oneOf(clientTypes).optional(),
  organization_id: idFilter.optional(),
})
export type ListClients = z.output<typeof ListClients>

export const ClientList = listOf(ClientItem)
