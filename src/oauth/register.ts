import { hash } from 'node:crypto'
import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import {
  type DynamicClient,
  endOf,
  endsSoon,
  insertDynamicClient,
  readDynamicClient,
  renewRegistration,
} from '#src/directory/clients/dynamic-store.ts'
import {
  findTokenOrganization,
  useInitialAccessToken,
} from '#src/directory/clients/initial-access-token-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { acceptsRegistrations, readOrganization } from '#src/directory/organizations/store.ts'
import { readJson } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/rate-limits.ts'
import { AppError } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { expand } from '#src/lib/permission.ts'
import { hashSecret, newSecret, type Secret } from '#src/lib/secrets.ts'
import { dynamicScopes, parseRegistration, type Registration } from '#src/protocol/oauth/dynamic-client.ts'
import { CONFIDENTIAL_DYNAMIC, PUBLIC_DYNAMIC, TOKEN_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { host } from '#src/protocol/oauth/redirect-uri.ts'
import { openidScopes } from '#src/protocol/oauth/resource.ts'
import type { Transaction } from '#src/storage/store.ts'
import { unauthorized } from './bearer.ts'
import { endpoint, oauthJson } from './endpoint.ts'

/** Maximum bytes of a registration. Published clients send less than 2 KiB. */
const MAX_BYTES = 16 * 1024

/**
 * Handles the client registration endpoint: https://www.rfc-editor.org/rfc/rfc7591#section-3. Public clients
 * that register the same metadata without an initial access token share one client_id, because some clients
 * register at each connection. A shared client that would soon be removed is renewed. If the charge for the
 * renewal is refused, the answer is the stored client, unless that client has expired. The setting
 * `client_registration` of each organization decides who may register. `settingsOf` has the default of this
 * setting.
 */
export const postRegister = (context: Context) =>
  endpoint(context, async endpoint_call => {
    // CORS: any web page may read the answer to an open registration of a public client. Such a client
    // belongs to no organization and has no secret.
    endpoint_call.client_id = PUBLIC_DYNAMIC
    const { call } = endpoint_call
    if (!(await acceptsRegistrations(context.store)))
      throw new OAuthError('access_denied', 'This server does not let clients register themselves.')
    const token = readToken(call)
    if (token === undefined && !(await acceptsRegistrations(context.store, 'open')))
      throw unauthorized('The registration needs an initial access token.', false)
    const body = await readMetadata(call)
    const registration = parseRegistration(body, mayAsk)
    const secret = registration.token_endpoint_auth_method === 'none' ? undefined : newSecret()
    // No web page may read an answer with a secret, or the answer to a registration with an initial access
    // token.
    if (secret || token !== undefined) endpoint_call.client_id = undefined
    const client_id = idOf(registration, secret, token)
    const known = client_id.startsWith(PUBLIC_DYNAMIC)
      ? await context.store.read(q => readDynamicClient(q, client_id))
      : undefined
    const isKept = known !== undefined && !endsSoon(known, context.clock.now())
    const client = isKept
      ? known
      : await register(context, call, client_id, registration, { secret, token, known })
    return oauthJson(describe(client, secret), 201)
  })

/**
 * True for a scope that a dynamic client may get: each scope in `dynamicScopes`, and each scope of an API,
 * even of an API that does not exist yet. False for permissions and all other scopes of OpenID Connect.
 */
const mayAsk = (scope: string): boolean =>
  expand([scope]).size === 0 && (dynamicScopes.includes(scope) || !openidScopes.includes(scope))

const idOf = (registration: Registration, secret: Secret | undefined, token: string | undefined): string => {
  if (token !== undefined) return TOKEN_DYNAMIC + newSecret()
  if (secret) return CONFIDENTIAL_DYNAMIC + newSecret()
  return PUBLIC_DYNAMIC + hash('sha256', JSON.stringify(registration), 'base64url')
}

/**
 * Reads the metadata of a registration. An unreadable body is refused with `invalid_client_metadata`, the
 * error code of RFC 7591.
 */
const readMetadata = async ({ request }: Call): Promise<unknown> => {
  try {
    return await readJson(request, undefined, MAX_BYTES)
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_request')
      throw new OAuthError('invalid_client_metadata', error.message)
    throw error
  }
}

const register = async (
  context: Context,
  call: Call,
  client_id: string,
  registration: Registration,
  {
    secret,
    token,
    known,
  }: { secret: Secret | undefined; token: string | undefined; known: DynamicClient | undefined },
): Promise<DynamicClient> => {
  const created_at = context.clock.now()
  try {
    await chargeRegistration(context, call, token)
  } catch (error) {
    if (known && created_at < endOf(known)) return known
    throw error
  }
  return context.store.write(async tx => {
    const organization_id = token === undefined ? null : await spend(context, tx, token)
    const client: DynamicClient = {
      client_id,
      organization_id,
      secret_hash: secret ? hashSecret(secret) : null,
      name: registration.client_name ?? host(registration.redirect_uris[0] ?? ''),
      registration,
      used_at: null,
      created_at,
      changed_at: null,
    }
    if (!(await insertDynamicClient(tx, client)))
      return (await renewRegistration(tx, client_id, created_at)) ?? client
    await record(context, tx, {
      type: 'client.registered',
      actor: anonymousActor,
      target_id: client_id,
      target_type: 'client',
      // Events of a client without an organization are recorded in the default organization, where the
      // operator can read them.
      organization_id: organization_id ?? DEFAULT_ORGANIZATION,
      client_info: call,
      metadata: { name: client.name, redirect_uris: registration.redirect_uris },
    })
    return client
  })
}

/**
 * Charges a registration to the network of the caller. A registration with a token is also charged to the
 * organization of the token. A request with a wrong token is charged to the budget `commit`, although it
 * stores nothing. Strangers with wrong tokens thus cannot use up the budget `registration`, which the whole
 * instance shares.
 *
 * @throws AppError 401 `invalid_token`, 429 `rate_limited`
 */
const chargeRegistration = async (
  context: Context,
  { ip_address }: Call,
  token: string | undefined,
): Promise<void> => {
  const key = { token_hash: hashSecret(token ?? ''), now: context.clock.now() }
  const organization_id =
    token === undefined ? undefined : await context.store.read(q => findTokenOrganization(q, key))
  const isWrong = token !== undefined && organization_id === undefined
  charge(context, { ip_address, organization_id, kind: isWrong ? 'commit' : 'registration' })
  if (isWrong) throw unauthorized(WRONG_TOKEN, true)
}

/**
 * Returns the initial access token of a request. Returns undefined when the request has no Authorization
 * header.
 */
const readToken = ({ request }: Call): string | undefined => {
  const header = request.headers.get('authorization')
  return header === null ? undefined : header.replace(/^bearer +/i, '')
}

const WRONG_TOKEN = 'The initial access token is unknown, used up or expired.'

/**
 * Uses an initial access token once and returns the organization of the token.
 *
 * @throws AppError 401 `invalid_token` when the token is unknown, used up or expired, or the organization has
 * turned registration off
 */
const spend = async (context: Context, tx: Transaction, token: string): Promise<OrganizationId> => {
  const used = await useInitialAccessToken(tx, hashSecret(token), context.clock.now())
  const organization = used && (await readOrganization(tx, used.organization_id))
  if (!organization || settingsOf(organization).client_registration === 'off')
    throw unauthorized(WRONG_TOKEN, true)
  return organization.id
}

/**
 * Returns the answer of https://www.rfc-editor.org/rfc/rfc7591#section-3.2.1. Members of the request that the
 * server did not register are left out.
 */
const describe = ({ client_id, created_at, registration }: DynamicClient, secret: Secret | undefined) => ({
  client_id,
  client_id_issued_at: Math.floor(created_at / SECOND),
  ...(secret && { client_secret: secret, client_secret_expires_at: 0 }),
  ...registration,
  response_types: ['code'],
})
