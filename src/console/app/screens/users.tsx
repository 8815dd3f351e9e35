import { useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { withQuery } from '../api.ts'
import { ExportButton } from '../export.tsx'
import { Tabs } from '../families.tsx'
import { Choice, SearchField } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListFoot } from '../list.tsx'
import { may } from '../me.ts'
import { useOrganizations } from '../names.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { Avatar, Badge, Card, Empty, Failure, Heading, Loading, When } from '../parts.tsx'
import { nameOf } from '../person-field.tsx'
import { joined, say, words } from '../words.ts'
import { BulkBar, MAX_BULK, openBulks } from './bulk.tsx'

const columns = [
  ['username', words.common.name],
  ['email', words.users.email],
  ['last_login', words.user.lastLogin],
  ['created_at', words.users.created],
] as const
type Sort = (typeof columns)[number][0]

const exported = [
  'id',
  'username',
  'email',
  'email_verified',
  'first_name',
  'last_name',
  'enabled',
  'roles',
  'organization_id',
  'created_at',
  'last_login',
]

/** Query parameters of the screen's address: the filters and the order of the list. */
const names = ['search', 'state', 'organization_id', 'sort', 'order'] as const

const states = [
  ['', words.common.all],
  ['enabled', words.users.isEnabled],
  ['disabled', words.users.isDisabled],
  ['unverified', words.users.unverified],
] as const

/** Screen of the list of users. */
export const UsersScreen = () => {
  const { entered, filters: settled, change, isFiltered } = useFilters(names)
  const { state, search, organization_id } = settled
  const sort = entered.sort || 'created_at'
  const order = entered.order || 'desc'
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const filters = {
    search,
    organization_id,
    enabled: state === 'enabled' ? 'true' : state === 'disabled' ? 'false' : '',
    email_verified: state === 'unverified' ? 'false' : '',
    sort,
    order,
  }
  const list = useList<UserAnswer>('/users', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const toggle = (id: string, isOn: boolean) => {
    const next = new Set(chosen)
    if (isOn && next.size < MAX_BULK) next.add(id)
    else next.delete(id)
    setChosen(next)
  }
  const sortBy = (column: Sort) =>
    change({ sort: column, order: sort === column && order === 'asc' ? 'desc' : 'asc' })
  const canPick = openBulks().length > 0
  const selected = list.items.filter(({ id }) => chosen.has(id))
  return (
    <>
      <Heading title={words.nav.users}>
        <ExportButton path="/users" filters={filters} columns={exported} file="users.csv" />
        {may('users:create') && (
          <a
            class="button primary"
            href={withQuery('/console/users/new', { organization_id: organization_id })}
          >
            <Icon name="plus" /> {words.users.add}
          </a>
        )}
      </Heading>
      <Tabs />
      <div class="filters">
        <SearchField
          placeholder={words.users.searchHint}
          value={entered.search}
          onValue={search => change({ search })}
        />
        <Choice
          label={words.users.state}
          value={entered.state}
          options={states}
          onValue={state => change({ state })}
        />
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <span class="unseen" role="status">
        {selected.length > 0 && say(words.users.selected, { count: selected.length })}
      </span>
      {selected.length > 0 && (
        <BulkBar
          users={selected}
          onDone={left => {
            // The person may have deselected some of them while the change ran.
            setChosen(chosen => new Set(left.map(({ id }) => id).filter(id => chosen.has(id))))
            list.reload()
          }}
        />
      )}
      <Card flush>
        {list.isLoading ? (
          <Loading rows={8} />
        ) : list.items.length === 0 ? (
          !list.problem && (
            <Empty title={isFiltered ? words.users.noneFits : words.users.none} icon="users">
              {isFiltered ? words.users.noneFitsText : words.users.noneText}
            </Empty>
          )
        ) : (
          <table>
            <thead>
              <tr>
                {canPick && (
                  <th class="pick">
                    <input
                      type="checkbox"
                      aria-label={words.users.selectAll}
                      checked={
                        selected.length > 0 && selected.length === Math.min(list.items.length, MAX_BULK)
                      }
                      onChange={event =>
                        setChosen(
                          new Set(
                            event.currentTarget.checked
                              ? list.items.slice(0, MAX_BULK).map(({ id }) => id)
                              : [],
                          ),
                        )
                      }
                    />
                  </th>
                )}
                {columns.map(([column, label]) => (
                  <th
                    key={column}
                    scope="col"
                    class={column}
                    aria-sort={sort === column ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}
                  >
                    <button type="button" onClick={() => sortBy(column)}>
                      {label}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {list.items.map(user => (
                <tr key={user.id} class={chosen.has(user.id) ? 'chosen' : ''}>
                  {canPick && (
                    <td class="pick">
                      <input
                        type="checkbox"
                        aria-label={say(words.users.select, { name: user.username })}
                        checked={chosen.has(user.id)}
                        onChange={event => toggle(user.id, event.currentTarget.checked)}
                      />
                    </td>
                  )}
                  <td class="username">
                    <a class="person" href={`/console/users/${user.id}`}>
                      <Avatar name={nameOf(user)} id={user.id} />
                      <span>
                        <strong>{nameOf(user)}</strong>
                        <span class="hint">
                          {joined([user.username, organizationOf(user.organization_id)])}
                        </span>
                      </span>
                      {!user.enabled && <Badge tone="bad">{words.users.isDisabled}</Badge>}
                    </a>
                  </td>
                  <td class="email">{user.email}</td>
                  <td class="last_login">
                    <When time={user.last_login} />
                  </td>
                  <td class="created_at">
                    <When time={user.created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {list.problem && <Failure problem={list.problem} retry={list.retry} />}
      </Card>
      <ListFoot list={list} />
    </>
  )
}
