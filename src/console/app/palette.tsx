import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { asProblem, read, withQuery } from './api.ts'
import { useModal } from './dialogs.tsx'
import { type PageOf, useSettled } from './hooks.ts'
import { Icon } from './icons.tsx'
import { foreignOrganization } from './names.tsx'
import { actions, type Found, isMeant } from './palette-actions.ts'
import { nameOf } from './person-field.tsx'
import { go, leave } from './router.ts'
import { joined, number, words } from './words.ts'

let openings = 0
/** Serial number of the open search panel. Each opening gets a new number. 0 while the panel is closed. */
const opening = signal(0)
/** Opens the search for objects, screens and actions. */
export const openPalette = (): void => {
  openings += 1
  opening.value = openings
}

const { palette } = words

/** Fields of an object that the search reads from its list. */
interface Named {
  id?: string
  client_id?: string
  name?: string
  username?: string
  email?: string
  first_name?: string
  last_name?: string
  display_name?: string
  slug?: string
  organization_id?: string
}

/**
 * Returns no results for a refused call, because the caller may lack the permission. Throws any other error.
 */
const nothingIfRefused = (error: unknown): Named[] => {
  const { status } = asProblem(error)
  if (status === 0 || status >= 500) throw error
  return []
}

/**
 * Searches a list. When the search finds nothing and the term may be an id, reads the object with this id.
 * `limit` is the maximum number of results. To find an object beyond it, the person types a longer term.
 */
const search = async (path: string, prefix: string, term: string, limit: number): Promise<Named[]> => {
  const found = await read<PageOf<Named>>(withQuery(path, { search: term, limit })).then(
    ({ data }) => data,
    nothingIfRefused,
  )
  if (found.length > 0 || !prefix || !term.startsWith(prefix)) return found
  return read<Named>(`${path}/${encodeURIComponent(term)}`).then(object => [object], nothingIfRefused)
}

/** Finds users, applications, organizations and roles, at most 20. */
const find = async (term: string): Promise<Found[]> => {
  const [users, clients, organizations, roles] = await Promise.all([
    search('/users', 'usr_', term, 6),
    search('/clients', '', term, 6),
    search('/organizations', 'org_', term, 4),
    search('/roles', 'role_', term, 4),
  ])
  return [
    ...users.map(
      ({ id = '', username = '', email = '', first_name = '', last_name = '' }): Found => ({
        icon: 'account',
        title: nameOf({ username, first_name, last_name }),
        about: joined([username, email]),
        href: `/console/users/${id}`,
      }),
    ),
    ...clients.map(
      ({ client_id = '', name = '' }): Found => ({
        icon: 'clients',
        title: name,
        about: client_id,
        href: `/console/clients/${encodeURIComponent(client_id)}`,
      }),
    ),
    ...organizations.map(
      ({ id = '', display_name = '', slug = '' }): Found => ({
        icon: 'organizations',
        title: display_name,
        about: slug,
        href: `/console/organizations/${id}`,
      }),
    ),
    ...(await Promise.all(
      roles.map(
        async ({ id = '', name = '', organization_id = '' }): Promise<Found> => ({
          icon: 'roles',
          title: name,
          about: joined([palette.role, await foreignOrganization(organization_id)]),
          href: `/console/roles/${id}`,
        }),
      ),
    )),
  ]
}

/** Results of a search, or the reason why it failed. */
interface Results {
  of: string
  items: Found[]
  failure?: string
}
const nothing: Results = { of: '', items: [] }

/** Identifies a result in each list of results. */
const keyOf = ({ href, title }: Found): string => href + title

const Panel = (props: { opening: number }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  /**
   * Results of the latest finished search. `found.of` is the text of this search. The results are shown until
   * the next search has finished.
   */
  const [found, setFound] = useState(nothing)
  /**
   * Key of the result that the person has chosen for the present text. It stays chosen when more results
   * arrive. '' means the first result.
   */
  const [kept, setKept] = useState('')
  const term = useSettled(text.trim().toLowerCase(), 150)
  useModal(dialog)
  useEffect(() => {
    if (term === '') return setFound(nothing)
    let isCurrent = true
    find(term)
      .then(items => ({ items }))
      .catch(error => ({ items: [], failure: asProblem(error).error_description }))
      .then(results => isCurrent && setFound({ of: term, ...results }))
    return () => {
      isCurrent = false
    }
  }, [term])
  const typed = text.trim().toLowerCase()
  const meant = actions().filter(each => isMeant(each, typed))
  /**
   * Ranks an exact title first, then screens and actions, then objects. Within screens and actions, and
   * within objects, titles that begin with the text come first.
   */
  const rank = (each: Found): number => {
    const title = each.title.toLowerCase()
    if (title === typed) return 0
    return (meant.includes(each) ? 1 : 3) + Number(!title.startsWith(typed))
  }
  const shown = [...meant, ...(typed === '' ? [] : found.items)].sort((one, other) => rank(one) - rank(other))
  const at = Math.max(
    0,
    shown.findIndex(each => keyOf(each) === kept),
  )
  const isFound = shown.length > 0 && !found.failure
  // The focus stays in the field, so the browser does not scroll the list.
  useLayoutEffect(
    () => document.getElementById(`found-${at}`)?.scrollIntoView({ block: 'nearest' }),
    [at, shown.length],
  )
  const close = () => {
    // The browser sends the close event with a delay. When the event arrives, the search may be open again.
    if (opening.value === props.opening) opening.value = 0
  }
  const choose = ({ href }: Found) => {
    close()
    if (!href.startsWith('/console')) return location.assign(href)
    leave(() => go(href))
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const [chosen, next] = [shown[at], shown.at((at + (step ?? 0)) % shown.length)]
    if (step !== undefined && next) setKept(keyOf(next))
    else if (event.key === 'Enter' && chosen) choose(chosen)
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label={palette.title} onClose={close}>
      <label class="search">
        <Icon name="search" />
        <span class="unseen">{palette.title}</span>
        <input
          type="text"
          role="combobox"
          aria-expanded
          aria-controls="found"
          aria-activedescendant={shown.length > 0 ? `found-${at}` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder={palette.title}
          maxLength={256}
          value={text}
          onInput={event => {
            setText(event.currentTarget.value)
            setKept('')
          }}
          onKeyDown={press}
        />
      </label>
      <div class="found" role="listbox" id="found" aria-label={palette.results}>
        {shown.map((each, n) => (
          <div
            key={keyOf(each)}
            id={`found-${n}`}
            role="option"
            tabIndex={-1}
            aria-selected={n === at}
            onPointerMove={() => setKept(keyOf(each))}
            onClick={() => choose(each)}
            onKeyDown={press}
          >
            <Icon name={each.icon} />
            <span>
              <span>{each.title}</span>
              <span class="hint">{each.about}</span>
            </span>
          </div>
        ))}
      </div>
      <p class={isFound ? 'unseen' : 'hint'} role="status">
        {found.of === typed &&
          (isFound ? `${palette.results}: ${number(shown.length)}` : (found.failure ?? palette.none))}
      </p>
    </dialog>
  )
}

const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')

/**
 * Opens the search when the person presses Ctrl-K, Cmd-K or, outside of fields, `/`. Does nothing while a
 * dialog is open.
 */
export const startPalette = (): void =>
  document.addEventListener('keydown', event => {
    const isAsked =
      (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) ||
      (event.key === '/' && !isTyping(event))
    if (!isAsked || document.querySelector('dialog[open]')) return
    event.preventDefault()
    openPalette()
  })

/** Shows the search while it is open. */
export const Palette = () => {
  const { value } = opening
  return value === 0 ? null : <Panel key={value} opening={value} />
}
