import { useEffect, useState } from 'preact/hooks'
import { withQuery } from './api.ts'
import { Field } from './fields.tsx'
import { type PageOf, useObject, useSettled } from './hooks.ts'
import { mayOnServer } from './me.ts'
import { words } from './words.ts'

interface Found {
  id: string
  slug: string
  display_name: string
}

/**
 * Lets the person choose an organization by its slug, with suggestions. The field is hidden on a server with
 * one organization, and from callers of a tenant. `onValue` gets the id, or the typed text when no
 * organization has this slug.
 */
export const OrganizationField = (props: { name?: string; hint: string; onValue(id: string): void }) => {
  const { name = 'organization_id' } = props
  const [typed, setTyped] = useState('')
  const search = useSettled(typed.trim())
  const [hasSeveral, setSeveral] = useState(false)
  const path = withQuery('/organizations', { search, limit: 10 })
  const { data } = useObject<PageOf<Found>>(mayOnServer('organizations:read') ? path : undefined)
  if (!hasSeveral && data && data.pagination.total > 1) setSeveral(true)
  const id = data?.data.find(({ slug }) => slug === typed.trim())?.id ?? typed.trim()
  useEffect(() => props.onValue(id), [id])
  if (!hasSeveral) return null
  return (
    <>
      <Field
        name={name}
        label={words.log.organization}
        hint={props.hint}
        list={`${name}-found`}
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onValue={setTyped}
      />
      <datalist id={`${name}-found`}>
        {data?.data.map(({ id, slug, display_name }) => (
          <option key={id} value={slug}>
            {display_name}
          </option>
        ))}
      </datalist>
    </>
  )
}
