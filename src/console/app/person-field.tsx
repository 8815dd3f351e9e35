import { useRef, useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { type PageOf, useObject, useSettled } from './hooks.ts'
import { Icon } from './icons.tsx'
import { Avatar } from './parts.tsx'
import { nameOrder, words } from './words.ts'

/** Returns the name of a person as the screens show it. */
export const nameOf = ({
  first_name,
  last_name,
  username,
}: Pick<UserAnswer, 'first_name' | 'last_name' | 'username'>): string =>
  nameOrder(first_name, last_name).join(' ').trim() || username

const Person = ({ user }: { user: UserAnswer }) => (
  <span class="person">
    <Avatar name={nameOf(user)} id={user.id} />
    <span>
      <strong>{nameOf(user)}</strong>
      <span class="hint">{user.email}</span>
    </span>
  </span>
)

/** Lets the person choose one user of an organization, with a search by name or address. */
export const PersonField = (props: {
  organization_id: string
  label: string
  user: UserAnswer | undefined
  onUser(user: UserAnswer | undefined): void
}) => {
  const { organization_id, label, user, onUser } = props
  const [search, setSearch] = useState('')
  /** True after a click on the button "change", until the search field has the focus. */
  const isAsked = useRef(false)
  const wanted = useSettled(search.trim())
  const found = useObject<PageOf<UserAnswer>>(
    user ? undefined : `/users?${new URLSearchParams({ search: wanted, limit: '5', organization_id })}`,
  ).data
  if (user)
    return (
      <div class="field">
        <span class="label">{label}</span>
        <div class="chosen-person">
          <Person user={user} />
          <button
            type="button"
            onClick={() => {
              isAsked.current = true
              onUser(undefined)
            }}
          >
            {words.testLogin.change}
          </button>
        </div>
      </div>
    )
  return (
    <div class="field">
      <label for="person">{label}</label>
      <span class="search">
        <Icon name="search" />
        <input
          id="person"
          ref={input => {
            if (input && isAsked.current) input.focus()
            isAsked.current = false
          }}
          type="search"
          placeholder={words.users.searchHint}
          value={search}
          maxLength={256}
          onInput={event => setSearch(event.currentTarget.value)}
        />
      </span>
      <ul class="options">
        {found?.data.map(each => (
          <li key={each.id}>
            <button type="button" class="option" onClick={() => onUser(each)}>
              <Person user={each} />
            </button>
          </li>
        ))}
        {found?.data.length === 0 && <li class="hint">{words.testLogin.nobody}</li>}
      </ul>
    </div>
  )
}
