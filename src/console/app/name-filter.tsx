import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { read, withQuery } from './api.ts'
import { Field } from './fields.tsx'
import { type PageOf, useObject, useSettled } from './hooks.ts'
import { may, mayListOrganizations } from './me.ts'
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
 * For each kind of object: the list to search, whether the caller may read this list, the name that a person
 * types, and the text that is shown beside the name.
 */
const kinds = {
  user: {
    list: '/users',
    isOpen: () => may('users:read'),
    name: ({ username }: Found) => username,
    about: ({ email }: Found) => email,
  },
  client: {
    list: '/clients',
    isOpen: () => may('clients:read'),
    name: ({ client_id }: Found) => client_id,
    about: ({ name }: Found) => name,
  },
  organization: {
    list: '/organizations',
    isOpen: mayListOrganizations,
    name: ({ slug }: Found) => slug,
    about: ({ display_name }: Found) => display_name,
  },
}

type Kind = keyof typeof kinds

/**
 * Returns the object whose name, or whose text beside the name, equals the typed text in any letter case.
 * Returns undefined when no object or several objects match.
 */
const named = (kind: Kind, found: Found[], typed: string): Found | undefined => {
  const wanted = typed.toLowerCase()
  const fitting = found.filter(each =>
    [kinds[kind].name(each), kinds[kind].about(each)].some(text => text?.toLowerCase() === wanted),
  )
  return fitting.length === 1 ? fitting[0] : undefined
}

/**
 * Lets the person choose an object by id or name, and suggests names. `onId` gets the id of the object that
 * the typed text names. If the text names no object, `onId` gets the text, which may be an id. In a filter,
 * `onId` gets '' while several objects match the text.
 */
export const NameFilter = (props: {
  kind: Kind
  label: string
  name?: string
  /**
   * Text below the field. Only forms set this text. A field without a hint is a filter, which also accepts a
   * part of a name if only one object has that part in its name.
   */
  hint?: string
  /** Id of the object that is chosen when the field is first shown. */
  id?: string
  onId(id: string): void
}) => {
  const { kind, label, name = kind, hint, id: initial = '', onId } = props
  const [entered, setEntered] = useState(initial)
  /** The object with the id `initial`. */
  const [first, setFirst] = useState<Found>()
  const typed = entered.trim()
  const { list, isOpen, name: nameOf, about } = kinds[kind]
  useEffect(() => {
    if (initial === '' || !isOpen()) return
    const show = (object: Found) => {
      setFirst(object)
      setEntered(now => (now === initial ? (nameOf(object) ?? now) : now))
    }
    // The field still shows the id if the object is deleted, or if the caller may not see the object.
    read<Found>(`${list}/${encodeURIComponent(initial)}`).then(show, () => {})
  }, [])
  const wanted = useSettled(typed, 300)
  const path = wanted !== '' && isOpen() && withQuery(list, { search: wanted, limit: 8 })
  const loaded = useObject<PageOf<Found>>(path || undefined)
  const found = loaded.data?.data ?? []
  const isRead = wanted === typed && (!path || !loaded.isLoading)
  const only = hint === undefined && found.length === 1 ? found[0] : undefined
  // Two organizations may have users of the same name, so the initial object is not looked up by name.
  const one =
    first && typed === nameOf(first) ? first : isRead ? (named(kind, found, typed) ?? only) : undefined
  const isVague = hint === undefined && found.length > 1
  const id = (kind === 'client' ? one?.client_id : one?.id) ?? (isVague ? '' : typed)
  // A filter waits until the id is known. A form gets the typed text at once, because the person may send the
  // form before the id is known, and even before the next paint.
  const isReady = isRead || one !== undefined || hint !== undefined
  useLayoutEffect(() => {
    if (isReady) onId(id)
  }, [id, isReady])
  return (
    <>
      <Field
        name={name}
        label={label}
        hint={hint}
        list={`${name}-found`}
        placeholder={words.common.nameOrId}
        autocomplete="off"
        spellcheck={false}
        value={entered}
        onValue={setEntered}
      />
      <datalist id={`${name}-found`}>
        {found.map(each => (
          <option key={each.id} value={nameOf(each)}>
            {about(each)}
          </option>
        ))}
      </datalist>
    </>
  )
}
