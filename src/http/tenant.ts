import type { Caller } from '#src/context.ts'
import type { OrganizationId } from '#src/lib/ids.ts'

/**
 * Returns the organization to which the caller is restricted, or undefined for callers of the whole instance.
 */
export const within = (caller: Caller): OrganizationId | undefined =>
  caller.instance ? undefined : caller.organization_id

/** The id of no organization; a list filtered by it is empty. */
const NO_ORGANIZATION: OrganizationId = 'org_'

/**
 * Returns the organization of a list's filter `organization_id`. Another tenant's id results in an empty
 * page.
 */
export const scopeOf = (caller: Caller, wanted?: string): OrganizationId | undefined => {
  const own = within(caller)
  if (wanted === undefined) return own
  return own === undefined || wanted === own ? (wanted as OrganizationId) : NO_ORGANIZATION
}
