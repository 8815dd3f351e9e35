import { hash } from 'node:crypto'
import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import {
  type DynamicClient,
  insertDynamicClient,
  readDynamicClient,
} from '#src/directory/clients/dynamic-store.ts'
import { acceptsRegistrations } from '#src/directory/organizations/store.ts'
import { readJson } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/charge.ts'
import { AppError } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { expand } from '#src/lib/permission.ts'
import { hashSecret, newSecret, type Secret } from '#src/lib/secrets.ts'
import { host } from '#src/pages/view.ts'
import { parseRegistration, type Registration } from '#src/protocol/oauth/dynamic-client.ts'
import { CONFIDENTIAL_DYNAMIC, PUBLIC_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { endpoint, oauthJson } from './endpoint.ts'

const MAX_BYTES = 16 * 1024

/**
 * Client registration endpoint: https://www.rfc-editor.org/rfc/rfc7591#section-3. Equal metadata of public clients
 * gives the same client, because some register at each connection.
 */
export const postRegister = (context: Context) =>
  endpoint(context, async endpoint_call => {
    // The answer concerns no client of a tenant, and any page may register.
    endpoint_call.client_id = PUBLIC_DYNAMIC
    const { call } = endpoint_call
    if (!(await acceptsRegistrations(context.store)))
      throw new OAuthError('access_denied', 'This server does not let clients register themselves.')
    const body = await readMetadata(call)
    const registration = parseRegistration(body, scope => expand([scope]).size === 0)
    const isPublic = registration.token_endpoint_auth_method === 'none'
    const secret = isPublic ? undefined : newSecret()
    // No page is to read a secret of a client that it does not run.
    if (secret) endpoint_call.client_id = undefined
    const client_id = secret
      ? CONFIDENTIAL_DYNAMIC + newSecret()
      : PUBLIC_DYNAMIC + hash('sha256', JSON.stringify(registration), 'base64url')
    const known = isPublic ? await context.store.read(q => readDynamicClient(q, client_id)) : undefined
    const client = known ?? (await register(context, call, client_id, registration, secret))
    return oauthJson(describe(client, secret), 201)
  })

/** RFC 7591 has an error code of its own for a body that is not read. */
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
  secret: Secret | undefined,
): Promise<DynamicClient> => {
  const { ip_address } = call
  charge(context, { ip_address, organization_id: undefined, kind: 'registration' })
  const client: DynamicClient = {
    client_id,
    secret_hash: secret ? hashSecret(secret) : null,
    name: registration.client_name ?? host(registration.redirect_uris[0] ?? ''),
    registration,
    used_at: null,
    created_at: context.clock.now(),
  }
  await context.store.write(async tx => {
    if (!(await insertDynamicClient(tx, client))) return
    await record(context, tx, {
      type: 'client.registered',
      actor: anonymousActor,
      target_id: client_id,
      target_type: 'client',
      organization_id: DEFAULT_ORGANIZATION,
      client_info: call,
      metadata: { name: client.name, redirect_uris: registration.redirect_uris },
    })
  })
  return client
}

/** Answer of https://www.rfc-editor.org/rfc/rfc7591#section-3.2.1; what is not registered is left out. */
const describe = ({ client_id, created_at, registration }: DynamicClient, secret: Secret | undefined) => ({
  client_id,
  client_id_issued_at: Math.floor(created_at / SECOND),
  ...(secret && { client_secret: secret, client_secret_expires_at: 0 }),
  ...registration,
  response_types: ['code'],
})
