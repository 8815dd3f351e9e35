import { useEffect, useState } from 'preact/hooks'
import { withQuery } from './api.ts'
import { type PageOf, useObject, useSettled } from './hooks.ts'
import { may, mayOnServer } from './me.ts'
import { words } from './words.ts'

interface Found {
  id: string
  client_id?: string
  username?: string
  email?: string
  name?: string
  slug?: string
  display_name?: string
}

/**
 * For each kind of object: the list to search, the name that a person types, and the text shown beside it.
 */
const kinds = {
  user: {
    path: (search: string) => may('users:read') && withQuery('/users', { search, limit: 8 }),
    name: ({ username }: Found) => username,
    about: ({ email }: Found) => email,
  },
  client: {
    path: (search: string) => may('clients:read') && withQuery('/clients', { search, limit: 8 }),
    name: ({ client_id }: Found) => client_id,
    about: ({ name }: Found) => name,
  },
  organization: {
    path: (search: string) =>
      mayOnServer('organizations:read') && withQuery('/organizations', { search, limit: 8 }),
    name: ({ slug }: Found) => slug,
    about: ({ display_name }: Found) => display_name,
  },
}

/** Returns the object whose name or text beside it was typed, otherwise the only one that was found. */
const resolved = (kind: keyof typeof kinds, found: Found[], typed: string): Found | undefined => {
  const wanted = typed.toLowerCase()
  const named = found.filter(each =>
    [kinds[kind].name(each), kinds[kind].about(each)].some(text => text?.toLowerCase() === wanted),
  )
  const [first, ...others] = named.length === 0 ? found : named
  return others.length === 0 ? first : undefined
}

/**
 * Filters a list by an object. The person enters the object's id or its name, for which there are
 * suggestions. `onId` gets the id, or the typed text when no single object has this name.
 */
export const NameFilter = (props: {
  kind: keyof typeof kinds
  label: string
  /** Id that the filter has at first. */
  id?: string
  onId(id: string): void
}) => {
  const { kind, label, id: initial = '', onId } = props
  const [typed, setTyped] = useState(initial)
  const wanted = useSettled(typed.trim(), 300)
  const path = wanted !== '' && kinds[kind].path(wanted)
  const loaded = useObject<PageOf<Found>>(path || undefined)
  const found = loaded.data?.data ?? []
  const one = wanted === '' ? undefined : resolved(kind, found, wanted)
  const id = (kind === 'client' ? one?.client_id : one?.id) ?? wanted
  const isReady = !path || !loaded.isLoading
  useEffect(() => {
    if (isReady) onId(id)
  }, [id, isReady])
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        value={typed}
        list={`${kind}-names`}
        placeholder={words.common.nameOrId}
        autocomplete="off"
        spellcheck={false}
        onInput={event => setTyped(event.currentTarget.value)}
      />
      <datalist id={`${kind}-names`}>
        {found.map(each => (
          <option key={each.id} value={kinds[kind].name(each)}>
            {kinds[kind].about(each)}
          </option>
        ))}
      </datalist>
    </label>
  )
}
