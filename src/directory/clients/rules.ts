import type { Caller } from '#src/context.ts'
import { groupsNamed } from '#src/directory/effective-roles-store.ts'
import { rolesNamed } from '#src/directory/users/store.ts'
import { type Detail, forbidden } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { DOCUMENT_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { copyOf } from '#src/protocol/oauth/published-documents.ts'
import type { Queries } from '#src/storage/store.ts'
import { readDynamicClient } from './dynamic-store.ts'
import { clientKinds } from './kinds.ts'
import type { Client } from './store.ts'

type Shape = {
  [Field in 'backchannel_logout_uri' | 'type' | 'kind' | 'token_endpoint_auth_method']?:
    | Client[Field]
    | undefined
} & {
  [Field in 'redirect_uris' | 'grant_types']?: string[]
}

/** Returns the conflicts between the fields of a client. */
export const shapeProblems = (client: Shape): Detail[] => {
  const { type, grant_types = [], redirect_uris = [], token_endpoint_auth_method: method } = client
  const isPublic = type === 'public'
  const kind = client.kind ? clientKinds[client.kind] : undefined
  const rules: [broken: boolean, field: string, message: string][] = [
    [
      grant_types.includes('authorization_code') && redirect_uris.length === 0,
      'redirect_uris',
      'The authorization code grant needs a redirect URI.',
    ],
    [
      isPublic && grant_types.includes('client_credentials'),
      'grant_types',
      'A public client cannot use client_credentials: it has no secret.',
    ],
    [
      isPublic && method !== undefined && method !== 'none',
      'token_endpoint_auth_method',
      'A public client has no secret.',
    ],
    [
      type === 'confidential' && method === 'none',
      'token_endpoint_auth_method',
      'A confidential client authenticates with client_secret_basic or client_secret_post.',
    ],
    [
      kind !== undefined && type !== undefined && type !== kind.type,
      'kind',
      `A client of kind ${client.kind} must be ${kind?.type}.`,
    ],
    [
      kind !== undefined && client.grant_types !== undefined && !grant_types.includes(kind.grant),
      'kind',
      `A client of kind ${client.kind} must use the grant ${kind?.grant}.`,
    ],
    // https://openid.net/specs/openid-connect-backchannel-1_0.html#BCRegistration
    [
      isPublic && client.backchannel_logout_uri?.startsWith('http:') === true,
      'backchannel_logout_uri',
      'The logout URI of a public client must be https.',
    ],
    [
      client.kind === 'service' && redirect_uris.length > 0,
      'kind',
      'A service signs in no users, so it must have no redirect URI.',
    ],
  ]
  return rules.flatMap(([broken, field, message]) =>
    broken ? [{ field, code: 'incompatible', message }] : [],
  )
}

type AdmissionFields = Partial<Pick<Client, 'allowed_roles' | 'allowed_groups' | 'capabilities'>>

/**
 * Returns a problem for each role and group that the organization does not have. Names in `known` are stored
 * already. They are not checked, so that a PUT may repeat the name of a deleted role. A client with
 * `cross_organization` is not checked: it may name roles and groups of any organization.
 */
export const admissionProblems = async (
  q: Queries,
  organization_id: OrganizationId,
  { allowed_roles = [], allowed_groups = [], capabilities = [] }: AdmissionFields,
  known: AdmissionFields = {},
): Promise<Detail[]> => {
  if (capabilities.includes('cross_organization')) return []
  const newRoles = allowed_roles.filter(name => !known.allowed_roles?.includes(name))
  const newGroups = allowed_groups.filter(name => !known.allowed_groups?.includes(name))
  const roles = (await rolesNamed(q, organization_id, newRoles)).map(({ name }) => name)
  const groups = await groupsNamed(q, organization_id, newGroups)
  const lacking = (field: string, kind: string, names: string[], there: string[]): Detail[] =>
    names
      .filter(name => !there.includes(name))
      .map(name => ({
        field,
        code: `unknown_${kind}`,
        message: `The organization has no ${kind} ${name}.`,
      }))
  return [
    ...lacking('allowed_roles', 'role', newRoles, roles),
    ...lacking('allowed_groups', 'group', newGroups, groups),
  ]
}

/**
 * Returns a problem for each redirect URI that the metadata document of the client does not list. If a
 * client_id is the URL of a document, only the application that publishes the document may get codes. The
 * stored document (`dynamic_clients`) comes before the copy in the executable. If neither exists, every
 * redirect URI is accepted.
 */
export const documentProblems = async (
  q: Queries,
  { client_id = '', redirect_uris = [] }: Partial<Pick<Client, 'client_id' | 'redirect_uris'>>,
): Promise<Detail[]> => {
  if (!client_id.startsWith(DOCUMENT_DYNAMIC)) return []
  const document = (await readDynamicClient(q, client_id))?.registration ?? copyOf(client_id)
  if (!document) return []
  return redirect_uris.flatMap((uri, i) =>
    document.redirect_uris.includes(uri)
      ? []
      : [
          {
            field: `redirect_uris.${i}`,
            code: 'not_in_document',
            message: `The metadata document lists only ${document.redirect_uris.join(' and ')}.`,
          },
        ],
  )
}

/**
 * Refuses the capability `cross_organization` to callers of a tenant. A client with this capability signs in
 * users of other organizations, and gets data about users of every organization.
 *
 * @throws AppError 403
 */
export const mayReachAcross = (caller: Caller, capabilities: readonly string[]): void => {
  if (capabilities.includes('cross_organization') && !caller.instance)
    throw forbidden(
      'Only administrators of the default organization may manage clients with cross_organization.',
    )
}

/**
 * Refuses a client_id that may be the URL of a metadata document, unless the caller belongs to the default
 * organization. A client with such an id replaces the dynamic client with the same id in every organization.
 *
 * @throws AppError 403
 */
export const mayNameDocument = ({ instance }: Caller, client_id: string): void => {
  if (client_id.startsWith(DOCUMENT_DYNAMIC) && !instance)
    throw forbidden(
      'Only administrators of the default organization may register or change a client whose client_id begins with https://.',
    )
}
