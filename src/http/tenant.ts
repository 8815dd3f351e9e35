import type { Caller } from '#src/context.ts'
import { NO_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'

/**
 * Returns the organization to which the caller is restricted. Returns undefined for a caller with access to
 * the whole instance, who always belongs to the default organization (admin/authenticate.ts).
 */
export const within = (caller: Caller): OrganizationId | undefined =>
  caller.instance ? undefined : caller.organization_id

/**
 * Returns the organization by which a list is filtered; undefined when the list has the objects of all
 * organizations. `wanted` is the filter `organization_id` of the request. The id of another tenant results in
 * an empty page, so that the answer does not reveal which ids exist.
 */
export const scopeOf = (caller: Caller, wanted?: string): OrganizationId | undefined => {
  const own = within(caller)
  if (wanted === undefined) return own
  return own === undefined || wanted === own ? (wanted as OrganizationId) : NO_ORGANIZATION
}
