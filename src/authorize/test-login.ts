import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { getClient } from '#src/directory/clients/service.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { line } from '#src/directory/fields.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import { asShown } from '#src/directory/users/attributes.ts'
import { getUser } from '#src/directory/users/change.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { idFilter } from '#src/http/list.ts'
import { newId } from '#src/lib/ids.ts'
import { furtherClaims, mappingOfApi } from '#src/oauth/further-claims.ts'
import { sessionEnd } from '#src/oauth/grants/authorization-code.ts'
import { accessTokenOf, findExclusion, NOT_ADMITTED, targetOf } from '#src/oauth/grants/grant.ts'
import { idTokenOf } from '#src/oauth/grants/id-token.ts'
import { userinfoOf } from '#src/oauth/userinfo.ts'
import { parseAuthorizeRequest } from '#src/protocol/oauth/authorize-request.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { readResources } from '#src/protocol/oauth/resource.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import type { ClaimMapping } from '#src/protocol/oidc/claim-mapping.ts'
import { profileAttributes } from '#src/protocol/oidc/claims.ts'
import { type TokenForm, unsignedToken } from '#src/tokens/issue.ts'
import { apisOf } from './flow.ts'

/** Claims whose values are unknown before a login. */
const OF_LOGIN = ['jti', 'sid', 'auth_time', 'acr', 'amr', 'nonce', 'at_hash']
type Claims = Record<string, unknown>

const Query = z.strictObject({
  user_id: idFilter.describe('The user who would sign in.'),
  scope: line(4096).optional().describe('Scopes of the request, separated by spaces; default: `openid`.'),
  resource: line(2048).optional().describe('Identifier of the API that the request names.'),
})
type Query = z.output<typeof Query>

const claims = z.record(z.string(), z.unknown())

const TestedToken = z
  .object({
    alg: z.string().describe('Algorithm of the signature.'),
    typ: z.string().describe('`typ` of the header.'),
    claims: claims.describe(
      `Claims as they would be now, except those in \`hidden\` and those that need a login: ${OF_LOGIN.join(', ')}.`,
    ),
  })
  .meta({
    id: 'TestedToken',
    description: 'A token that a login would get. No token is issued.',
    example: { alg: 'RS256', typ: 'JWT', claims: { sub: example.user_id.slice(4) } },
  })

const TestLogin = z
  .object({
    refusal: z
      .object({
        error: z.string().describe('OAuth error code.'),
        error_description: z.string().describe('The reason as a sentence.'),
      })
      .nullable()
      .describe('Why the application would get no tokens; null when it would get tokens.'),
    scope: z
      .string()
      .nullable()
      .describe('Scopes of the access token, separated by spaces; null after a refusal.'),
    id_token: TestedToken.nullable().describe(
      'The ID token; null after a refusal, and without the scope `openid`.',
    ),
    access_token: TestedToken.nullable().describe('The access token; null after a refusal.'),
    userinfo: claims
      .nullable()
      .describe(
        'Answer of the UserInfo endpoint; null after a refusal, with a token for an API, and without the scope `openid`.',
      ),
    hidden: z
      .array(z.string())
      .describe(
        'Names of claims that the application would get, but whose values administrators may not see.',
      ),
  })
  .meta({
    id: 'TestLogin',
    description: 'The claims that an application would get about a user who signs in to it.',
    example: {
      refusal: null,
      scope: 'openid',
      id_token: { alg: 'RS256', typ: 'JWT', claims: { sub: example.user_id.slice(4) } },
      access_token: { alg: 'RS256', typ: 'at+jwt', claims: { sub: example.user_id.slice(4) } },
      userinfo: { sub: example.user_id.slice(4) },
      hidden: [],
    },
  })
type TestLogin = z.output<typeof TestLogin>

const refused = ({ code, description }: OAuthError): TestLogin => ({
  refusal: { error: code, error_description: description },
  scope: null,
  id_token: null,
  access_token: null,
  userinfo: null,
  hidden: [],
})

/** PKCE challenge without a known verifier. A test redeems no code, so it needs no verifier. */
const NO_CHALLENGE = 'A'.repeat(43)

/** Builds the authorization request of the test, and parses it as the authorization endpoint does. */
const requestOf = async (context: Context, client: Client, user: UserRow, { scope, resource }: Query) => {
  const values = new Map(
    Object.entries({
      client_id: client.client_id,
      response_type: 'code',
      code_challenge: NO_CHALLENGE,
      code_challenge_method: 'S256',
      organization_id: user.organization_id,
      ...(scope && { scope }),
      ...(resource && { resource }),
    }),
  )
  const apis = await apisOf(context, client, readResources(values))
  const target = { redirect_uri: '', state: undefined, response_mode: undefined }
  return parseAuthorizeRequest({ values, irregular: new Map() }, client, target, apis)
}

/** Claims that show the attribute of the same name even without a claim mapping. */
const OF_ATTRIBUTES = [...profileAttributes, 'phone_number', 'phone_number_verified', 'address']

/** Returns the names of claims whose values come from attributes that administrators may not see. */
const hiddenClaims = (names: ReadonlySet<string>, mapping: ClaimMapping): string[] => [
  ...OF_ATTRIBUTES.filter(name => names.has(name)),
  ...Object.entries(mapping).flatMap(([claim, rule]) => {
    const [, name] = /^user\.attributes\.([^.]+)/.exec(typeof rule === 'string' ? rule : rule.from) ?? []
    return name !== undefined && names.has(name) ? [claim] : []
  }),
]

/**
 * Composes the tokens that the application would get. It uses the functions that issue tokens, but signs no
 * token, so that the answer is not a credential. Values that administrators may not see are left out, because
 * a claim mapping must not reveal them.
 *
 * @throws OAuthError for a request that would be refused
 */
const testLogin = async (
  context: Context,
  client: Client,
  user: UserRow,
  query: Query,
): Promise<TestLogin> => {
  const request = await requestOf(context, client, user, query)
  const now = context.clock.now()
  return context.store.read(async q => {
    if (!user.enabled) throw new OAuthError('access_denied', 'The user is disabled.')
    const exclusion = await findExclusion(q, client, user.organization_id)
    if (exclusion) throw new OAuthError('access_denied', exclusion)
    if (!(await isAdmitted(q, client, user.id))) throw new OAuthError('access_denied', NOT_ADMITTED)
    const roles = await effectiveRoles(q, user.id)
    const resources = request.resources?.join(' ') ?? ''
    const granted = { resources, scopes: request.scopes, user, roles, since: now, now }
    // At a real login the user is asked for the missing consent.
    const asked = { ...client, consent_required: false }
    const { api, scopes } = await targetOf(q, asked, granted, undefined)
    const further = await furtherClaims(q, client, user.id, scopes, { roles, api })
    const organization = await readOrganization(q, user.organization_id)
    const grant = {
      user,
      roles,
      further,
      scopes,
      api,
      session_id: newId('sess', now),
      ends_by: organization ? sessionEnd(settingsOf(organization), now) : null,
    }
    const identity = { auth_time: 0, acr: '', amr: [], nonce: undefined, access_token: '' }
    const isOpenId = scopes.includes('openid')
    const shown = asShown(organization, user).attributes
    const names = new Set(Object.keys(user.attributes).filter(name => !Object.hasOwn(shown, name)))
    // If the client's rule for a claim gives no value, the token has the value of the API's rule for this
    // claim. Both mappings are therefore searched for hidden claims.
    const mappings = [mappingOfApi(api, scopes), client.claims]
    const unseen = new Set(mappings.flatMap(mapping => hiddenClaims(names, mapping)))
    const hidden = new Set<string>()
    const visible = (claims: Claims): Claims =>
      Object.fromEntries(
        Object.entries(claims).filter(([name]) => {
          if (unseen.has(name)) hidden.add(name)
          return !unseen.has(name) && !OF_LOGIN.includes(name)
        }),
      )
    const tested = (token: TokenForm) => ({
      alg: token.alg,
      typ: token.typ,
      claims: visible(unsignedToken(context, token).claims),
    })
    return {
      refusal: null,
      scope: formatScope(scopes),
      id_token: isOpenId ? tested(idTokenOf(context, client, { ...grant, ...identity })) : null,
      access_token: tested(accessTokenOf(context, client, grant)),
      userinfo: isOpenId && !api ? visible(await userinfoOf(context, q, client, user, scopes)) : null,
      hidden: [...hidden].sort(),
    }
  })
}

/** Returns the route that shows which claims an application would get. */
export const testLoginRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'testLogin',
    method: 'GET',
    path: '/clients/:client_id/test-login',
    permission: 'clients:read',
    also: 'users:read',
    summary: 'Show the claims that a client would get when a user signs in; no token is issued',
    query: Query,
    status: 200,
    answer: TestLogin,
    errors: [404],
    handle: async ({ caller, params, query }) => {
      const { client, user } = await context.store.read(async q => ({
        client: await getClient(q, caller, params.client_id),
        user: await getUser(q, caller, query.user_id),
      }))
      return testLogin(context, client, user, query).catch(error => {
        if (error instanceof OAuthError) return refused(error)
        throw error
      })
    },
  }),
]
