import { useRef, useState } from 'preact/hooks'
import type { RoleAnswer } from '#src/directory/roles/schema.ts'
import { Check, SearchField } from './fields.tsx'
import { useList, useSettled } from './hooks.ts'
import { ListFoot } from './list.tsx'
import { joined, words } from './words.ts'

type Role = (typeof RoleAnswer)['_output']

/**
 * Reads the roles of an organization page by page, narrowed by a search. Reads nothing when `isRead` is
 * false.
 */
export const useRoles = (organization_id: string | undefined, isRead = true) => {
  const [search, setSearch] = useState('')
  const wanted = useSettled(search.trim())
  const list = useList<Role>(isRead && '/roles', { organization_id, search: wanted, limit: 50 })
  /** Roles of all pages and searches so far, by name. */
  const known = useRef(new Map<string, Role>()).current
  for (const role of list.items) known.set(role.name, role)
  // The search field stays once the list has had several pages, even when a search finds few roles.
  const isLong = useRef(false)
  isLong.current ||= list.hasMore
  return { list, known, search, setSearch, isSearched: wanted !== '', isLong: isLong.current }
}

/**
 * Chooses roles of an organization. A list with more than one page can be searched. Chosen roles that are not
 * loaded yet are shown first. During a search, only the found roles are shown.
 */
export const RoleChecks = (props: {
  roles: ReturnType<typeof useRoles>
  chosen: readonly string[]
  /** Text beside the description of a role. */
  about?(name: string): string
  /** Returns false for a role that is not offered. */
  isOffered?(role: Role): boolean
  onChosen(names: string[]): void
}) => {
  const { roles, chosen, about, isOffered = () => true, onChosen } = props
  const { list, known, search, setSearch, isSearched, isLong } = roles
  // A role that was chosen keeps its place in the list after it is unticked.
  const kept = useRef(new Set<string>()).current
  for (const name of chosen) kept.add(name)
  const found = list.items.filter(isOffered).map(({ name }) => name)
  const others = isSearched ? [] : [...kept].filter(name => !found.includes(name))
  const names = list.hasMore ? [...others, ...found] : [...found, ...others]
  return (
    <>
      {isLong && <SearchField placeholder={words.common.name} value={search} onValue={setSearch} />}
      <div class="checks">
        {names.map(name => (
          <Check
            key={name}
            label={name}
            hint={joined([known.get(name)?.description, about?.(name)])}
            checked={chosen.includes(name)}
            onChecked={isOn =>
              onChosen(isOn ? [...chosen, name].sort() : chosen.filter(each => each !== name))
            }
          />
        ))}
        {isSearched && !list.isLoading && names.length === 0 && <p class="hint">{words.palette.none}</p>}
      </div>
      {list.hasMore && <ListFoot list={list} />}
    </>
  )
}
