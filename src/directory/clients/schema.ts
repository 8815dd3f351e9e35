import { z } from 'zod'
import { mappingOf } from '#src/directory/claim-mapping.ts'
import {
  flag,
  integer,
  line,
  lines,
  oneOf,
  owner,
  readOnly,
  readOnlyTimes,
  set,
  stored,
  times,
} from '#src/directory/fields.ts'
import { FreeAttributes } from '#src/directory/users/free-attributes.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { clientAuthMethods } from '#src/protocol/oauth/client-auth.ts'
import { registeredItself } from '#src/protocol/oauth/dynamic-id.ts'
import { checkRegistrable } from '#src/protocol/oauth/redirect-uri.ts'
import { isScopeToken } from '#src/protocol/oauth/scope.ts'
import { grantTypes } from '#src/protocol/oauth/token-request.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import type { Kind } from './kinds.ts'
import { logoutDefaults, logoutFields } from './logout-fields.ts'
import { noLogouts, plainPresentation } from './plain-fields.ts'
import { presentationDefaults, presentationFields } from './presentation-fields.ts'
import { refreshDefaults, refreshFields } from './refresh-fields.ts'
import type { ClientSummary, Client as Row } from './store.ts'

export const clientTypes = ['confidential', 'public'] as const

const kindNames = ['web', 'spa', 'native', 'service'] as const satisfies Kind[]

/**
 * A client id must never look like a user id in `sub`: https://www.rfc-editor.org/rfc/rfc9068#section-5. The
 * prefix of clients that registered themselves is refused, because an id with this prefix is looked up only
 * among these clients. The form encoding of client_secret_basic changes no allowed character except `:`, `/`
 * and `~`. Ids without these characters also work with libraries that omit the encoding.
 */
const client_id = z
  .string('A text of 3 to 128 characters.')
  .regex(/^[A-Za-z0-9._~:/-]{3,128}$/, '3 to 128 letters, digits and - . _ ~ : / are allowed.')
  .refine(
    text => text !== 'default' && !looksLikeId(text) && !registeredItself(text),
    'The value must not look like a generated id.',
  )
  .describe('Unique in the instance. It cannot be changed.')

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
    'An http or https origin such as https://app.example.com, without path, trailing slash or wildcard.',
  )

const scope = z
  .string('A scope.')
  .max(128, 'At most 128 characters.')
  .refine(
    text => isScopeToken(text) && text !== '*',
    'A scope is printable ASCII without spaces, double quotes or backslashes, and not *.',
  )

const claims = mappingOf(z.union([z.string(), z.strictObject({ from: z.string(), scope })]), {
  rule: 'A path, or an object with from (a path) and scope.',
  about:
    'Further claims of ID tokens, access tokens and userinfo, by name. The value is a path, such as `user.attributes.tenant`, or an object. In the object, `from` is the path, and `scope` is the scope that the claim needs.',
})

/** The type is fixed, because the secret, the grants and the redirect URIs depend on it. */
const type = oneOf(clientTypes).describe(
  '`public` clients run on devices of their users and have no secret. The type cannot be changed.',
)
const alg = oneOf(signingAlgs).nullable()

export const writable = {
  name: line(128, 1).describe('Shown on the login pages.'),
  description: lines(1000).describe('Shown to administrators, and on the consent page.'),
  kind: oneOf(kindNames).nullable().describe('Kind of the application; null when no kind was chosen.'),
  redirect_uris: set(uri, 100).describe(
    'URIs to which authorization responses are sent. The URIs are compared exactly, with one exception: `http://127.0.0.1` and `http://[::1]` without a port match any port. For a dynamic client, the port of `http://localhost`, `http://127.0.0.1` and `http://[::1]` is ignored.',
  ),
  post_logout_redirect_uris: set(uri, 100).describe('URIs to which a logout may redirect.'),
  web_origins: set(web_origin, 100).describe(
    'Origins whose scripts may read the answers of the token, userinfo and revocation endpoints.',
  ),
  grant_types: set(oneOf(grantTypes), 3).describe('Grant types that the client may use.'),
  scopes: set(scope, 200).describe('Scopes that the client may request; `admin` stands for all permissions.'),
  token_endpoint_auth_method: oneOf(clientAuthMethods).describe(
    'How the client authenticates; `none` for public clients.',
  ),
  // At most a day, because a retired key stays published for a day and ten minutes (tokens/rotation.ts).
  access_token_ttl: integer(60, DAY / SECOND).describe('Lifetime of access tokens in seconds.'),
  refresh_token_ttl: integer(300, (365 * DAY) / SECOND).describe('Lifetime of refresh tokens in seconds.'),
  capabilities: set(oneOf(['token_introspection', 'cross_organization']), 2).describe(
    'Further rights: token introspection, and signing in users of other organizations.',
  ),
  consent_required: flag.describe('Whether users are asked to consent to the scopes.'),
  id_token_signed_response_alg: alg.describe("Algorithm of ID tokens; null: the server's default."),
  access_token_signed_response_alg: alg.describe("Algorithm of access tokens; null: the server's default."),
  access_token_typ: oneOf(['at+jwt', 'JWT']).describe(
    'Header `typ` of access tokens (RFC 9068 section 2.1).',
  ),
  ...refreshFields,
  ...presentationFields,
  ...logoutFields,
  attributes: FreeAttributes,
  claims,
  allowed_roles: set(line(128, 1), 100).describe(
    'Names of roles whose holders may use the client, in addition to members of `allowed_groups`. If both lists are empty, every user may use it.',
  ),
  allowed_groups: set(line(128, 1), 100).describe(
    'Names of groups whose members may use the client, in addition to holders of `allowed_roles`. If both lists are empty, every user may use it.',
  ),
}

const shop = {
  client_id: example.client_id,
  name: 'Shop',
  type: 'confidential',
  kind: 'web',
  redirect_uris: ['https://shop.example.com/callback'],
  post_logout_redirect_uris: ['https://shop.example.com/'],
  grant_types: ['authorization_code', 'refresh_token'],
  scopes: ['openid', 'profile', 'email', 'offline_access'],
}
const shopAnswer = {
  ...shop,
  description: '',
  organization_id: example.organization_id,
  web_origins: [],
  token_endpoint_auth_method: 'client_secret_basic',
  access_token_ttl: 3600,
  refresh_token_ttl: 2_592_000,
  capabilities: [],
  consent_required: true,
  id_token_signed_response_alg: null,
  access_token_signed_response_alg: null,
  access_token_typ: 'at+jwt',
  refresh_token_reuse_window: 0,
  id_token_on_refresh: false,
  ...plainPresentation,
  ...noLogouts,
  attributes: {},
  claims: {},
  allowed_roles: [],
  allowed_groups: [],
  created_at: example.time,
  updated_at: example.time,
}
const client_secret = z
  .string()
  .describe('The server stores only the hash, so the secret cannot be read again.')
const SECRET = 'q3l5Xc0e9RrHkT7mZ1vYw8uJpN2sGfDaB6iOxE4hLCk'

/**
 * Reasons for the defaults: a stolen access token works for an hour at most. A refresh token expires after 30
 * days without use, so people stay signed in over holidays. There is no reuse window, so a second use of a
 * refresh token shows a theft. Consent is required until an administrator turns it off.
 */
export const CreateClient = z
  .strictObject({
    client_id,
    name: writable.name,
    description: writable.description.default(''),
    type,
    kind: writable.kind.default(null),
    organization_id: owner,
    redirect_uris: writable.redirect_uris.default([]),
    post_logout_redirect_uris: writable.post_logout_redirect_uris.default([]),
    web_origins: writable.web_origins.default([]),
    grant_types: writable.grant_types,
    scopes: writable.scopes,
    token_endpoint_auth_method: writable.token_endpoint_auth_method
      .optional()
      .describe('Default: `client_secret_basic`, for public clients `none`.'),
    access_token_ttl: writable.access_token_ttl.default(3600),
    refresh_token_ttl: writable.refresh_token_ttl.default(2_592_000),
    capabilities: writable.capabilities.default([]),
    consent_required: writable.consent_required.default(true),
    id_token_signed_response_alg: writable.id_token_signed_response_alg.default(null),
    access_token_signed_response_alg: writable.access_token_signed_response_alg.default(null),
    access_token_typ: writable.access_token_typ.default('at+jwt'),
    ...refreshDefaults,
    ...presentationDefaults,
    ...logoutDefaults,
    attributes: FreeAttributes.default({}),
    claims: claims.default({}),
    allowed_roles: writable.allowed_roles.default([]),
    allowed_groups: writable.allowed_groups.default([]),
  })
  .meta({ id: 'CreateClient', description: 'A new client.', example: shop })
export type CreateClient = z.output<typeof CreateClient>

export const UpdateClient = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyTimes,
    organization_id: readOnly(z.string()),
    client_id: readOnly(z.string()),
    type: readOnly(z.string()),
  })
  .meta({
    id: 'UpdateClient',
    description: 'The fields of a client to change.',
    example: { access_token_ttl: 900, consent_required: false },
  })
export type UpdateClient = z.output<typeof UpdateClient>

export const ClientAnswer = z
  .object({ client_id, type, organization_id: stored.organization_id, ...writable, ...times })
  .meta({
    id: 'Client',
    description: 'An application that is registered with Gatehouse.',
    example: shopAnswer,
  })

/** The answer that creates a client. Only this answer has the secret: the server stores only its hash. */
export const CreatedClient = ClientAnswer.extend({ client_secret: client_secret.optional() }).meta({
  id: 'CreatedClient',
  description: 'A new client. If it is confidential, the answer has its secret.',
  example: { ...shopAnswer, client_secret: SECRET },
})

export const ClientSecret = z.object({ client_id, client_secret }).meta({
  id: 'ClientSecret',
  description: 'A new secret of a client.',
  example: { client_id: shop.client_id, client_secret: SECRET },
})

/** Returns a client in the form of the admin API's answer, without its secret. */
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
}).meta({
  id: 'ListedClient',
  description: 'A client as lists show it.',
  example: {
    client_id: shop.client_id,
    name: shop.name,
    type: shop.type,
    kind: shop.kind,
    organization_id: example.organization_id,
    grant_types: shop.grant_types,
    scopes: shop.scopes,
    created_at: example.time,
    updated_at: example.time,
  },
})

/** Returns a client as an entry of the list. */
export const clientItem = (client: ClientSummary): z.output<typeof ClientItem> => ({
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
  type: oneOf(clientTypes).optional().describe('Only clients of this type.'),
  grant_type: oneOf(grantTypes).optional().describe('Only clients that may use this grant type.'),
  search: line(256).optional().describe('Part of name or client ID, in upper or lower case.'),
  organization_id: ofOrganization,
})
export type ListClients = z.output<typeof ListClients>

export const ClientList = listOf('ClientList', ClientItem)
