import { type PageOf, useObject } from './hooks.ts'
import { mayListOrganizations } from './me.ts'
import { NameFilter } from './name-filter.tsx'
import { words } from './words.ts'

/**
 * True when the last read found several organizations. If it is true, the field is shown before the next read
 * ends.
 */
let hasSeveral = false

/**
 * Lets the person choose an organization. The field is hidden from callers who may not list all
 * organizations. On a server with one organization it is shown only if the form or filter already has an id.
 */
export const OrganizationField = (props: { hint?: string; id?: string; onValue(id: string): void }) => {
  const { onValue, ...more } = props
  const path = mayListOrganizations() ? '/organizations?limit=2' : undefined
  const { data } = useObject<PageOf<unknown>>(path)
  if (data) hasSeveral = data.data.length > 1
  if (!path || !(hasSeveral || (data && more.id))) return null
  // The field's name is also the id of its input. A form can open over a screen whose filter has this field
  // too, so the field has another name in a form. Only forms set `hint`.
  const name = more.hint === undefined ? {} : { name: 'organization_id' }
  return <NameFilter kind="organization" {...name} label={words.log.organization} onId={onValue} {...more} />
}
