import type { Caller } from '#src/context.ts'
import type { OrganizationId } from '#src/lib/ids.ts'

/** The organization whose rows alone the caller may see; undefined for callers of the whole instance. */
export const within = (caller: Caller): OrganizationId | undefined =>
  caller.instance ? undefined : caller.organization_id

/** Of no organization: a list filtered by it is empty. */
const NOWHERE: OrganizationId = 'org_'

/** What a list's filter `organization_id` comes to for this caller: another tenant's gives an empty page. */
export const scopeOf = (caller: Caller, wanted?: string): OrganizationId | undefined => {
  const own = within(caller)
  if (wanted === undefined) return own
  return own === undefined || wanted === own ? (wanted as OrganizationId) : NOWHERE
}
