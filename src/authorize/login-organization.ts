import type { Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { findOrganizationByDomain, type Organization } from '#src/directory/organizations/store.ts'
import type { Call } from '#src/http/call.ts'
import { loginHash } from '#src/http/cookies.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { CONSOLE_CLIENT } from '#src/lib/ids.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import type { AuthorizeRequest } from '#src/protocol/oauth/authorize-request.ts'
import { listLogins } from '#src/sessions/logins.ts'
import type { Flow } from './flow.ts'

/** Maximum number of characters of a typed organization that a page repeats; no slug is longer. */
export const MAX_SLUG = 64

/**
 * Returns the typed organization, or an empty text if none was typed. The URL contains the typed text, so
 * that the page keeps the text when the user changes the language.
 */
export const keptSlug = ({ request }: Call): string =>
  (new URL(request.url).searchParams.get('organization') ?? '').slice(0, MAX_SLUG)

/** Returns the slug of the form field `organization` if a user of any organization may answer the request. */
export const typedSlug = ({ request }: Flow, form: ReadonlyMap<string, string>): string | undefined =>
  (request.any_organization && form.get('organization')?.trim().toLowerCase()) || undefined

/**
 * Returns a name that no user has, for a typed organization that does not exist. The server then does the
 * same work and gives the same answer as for a wrong password, so that nobody learns which organizations
 * exist. User names contain no backslash.
 */
export const nobody = (slug = '', username: string): string => `${slug}\\${username}`

/**
 * Returns the organization that owns the login domain of the address. People know their address, but not the
 * slug of their organization, and users of several organizations may have the same address. Returns undefined
 * when the request lacks `any_organization`, when no organization owns the domain, or when the organization
 * of the request owns it.
 */
export const homeOf = async (
  { store }: Context,
  { request, organization }: Flow,
  username: string,
): Promise<Organization | undefined> => {
  if (!request.any_organization) return undefined
  const domain = canonicalEmail(username.trim())?.split('@')[1]
  const home = domain && (await findOrganizationByDomain(store, domain))
  return home && home.id !== organization.id ? home : undefined
}

/**
 * Returns the id of the organization at which the user of a new request signs in. A link of the console that
 * is opened in a new tab names no organization. In a browser without a login in the default organization, the
 * console's request is therefore for the organization of the latest login whose user may use the console. A
 * request with `prompt`, which "Sign in with another account" sends, leads away from this login.
 */
export const requestedOrganization = async (
  context: Context,
  { request }: Call,
  { client_id, any_organization, organization_id, prompts }: AuthorizeRequest,
): Promise<string> => {
  if (client_id !== CONSOLE_CLIENT || !any_organization || prompts.length > 0) return organization_id
  const hash = loginHash(context, request)
  if (!hash) return organization_id
  return context.store.read(async q => {
    const usable = (await listLogins(context, q, hash)).filter(({ enabled }) => enabled)
    if (usable.some(login => login.organization_id === organization_id)) return organization_id
    for (const login of usable) {
      const roles = await effectiveRoles(q, login.user_id)
      if (isAdministrative(permissionsOf(roles))) return login.organization_id
    }
    return organization_id
  })
}
