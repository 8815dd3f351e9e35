import { type PageOf, useObject } from './hooks.ts'
import { mayOnServer } from './me.ts'
import { NameFilter } from './name-filter.tsx'
import { words } from './words.ts'

/** True when the last read found several organizations. The field is then shown before the next read ends. */
let hasSeveral = false

/**
 * Lets the person choose an organization. The field is hidden on a server with one organization, and from
 * callers who may not list all organizations.
 */
export const OrganizationField = (props: { hint?: string; id?: string; onValue(id: string): void }) => {
  const { onValue, ...more } = props
  // In a form (`hint`) the field needs another name than in a filter: the name is also the id of the input,
  // and a form may open over a filter.
  const path = mayOnServer('organizations:read') ? '/organizations?limit=2' : undefined
  const { data } = useObject<PageOf<unknown>>(path)
  if (data) hasSeveral = data.data.length > 1
  if (!path || !(hasSeveral || (data && more.id))) return null
  return (
    <NameFilter
      kind="organization"
      {...(more.hint !== undefined && { name: 'organization_id' })}
      label={words.log.organization}
      onId={onValue}
      {...more}
    />
  )
}
