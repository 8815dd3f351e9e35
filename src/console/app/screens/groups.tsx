import { useState } from 'preact/hooks'
import type { GroupAnswer } from '#src/directory/groups/schema.ts'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { useAction } from '../action.ts'
import { AsCode } from '../as-code.tsx'
import { Deletion } from '../deletion.tsx'
import { Field, SearchField } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, type PageOf, useList, useObject, useSettled } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { EmptyCard, ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { ForeignOrganization, UserLink, useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Card, Empty, EventsLink, Heading, Refused, Value } from '../parts.tsx'
import { RoleChecks, useRoles } from '../role-checks.tsx'
import { go } from '../router.ts'
import { UnloadedScreen } from '../unloaded.tsx'
import { joined, say, words } from '../words.ts'

type Group = (typeof GroupAnswer)['_output']

/** Screen of the list of groups. */
export const GroupsScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Group>('/groups', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const [draft, setDraft] = useState<{ name: string; description: string }>()
  return (
    <>
      <Heading title={words.nav.groups} lead={words.groups.lead}>
        <AddButton
          label={words.groups.add}
          permission="groups:create"
          onAdd={() => setDraft({ name: '', description: '' })}
        />
      </Heading>
      <div class="filters">
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={list}
        empty={<Empty title={words.groups.none} icon="groups" />}
        row={group => (
          <li key={group.id}>
            <a class="row link" href={`/console/groups/${group.id}`}>
              <span>
                <strong>{group.name}</strong>
                <span class="hint">
                  {joined([
                    organizationOf(group.organization_id),
                    group.roles.join(', ') || group.description,
                  ])}
                </span>
              </span>
              <span class="wide muted">{say(words.common.members, { count: group.member_count })}</span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<Group>
          title={words.groups.add}
          owner={filters.organization_id}
          path="/groups"
          body={draft}
          onMade={group => {
            go(`/console/groups/${group.id}`)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Field
            name="name"
            label={words.common.name}
            autocomplete="off"
            value={draft.name}
            onValue={name => setDraft({ ...draft, name })}
          />
        </NewDialog>
      )}
    </>
  )
}

const Form = ({ group, loaded }: { group: Group; loaded: Loaded<Group> }) => {
  const path = `/groups/${group.id}`
  const edit = useEdit<Group>(path, group, loaded.etag, loaded)
  const { values, set } = edit
  const roles = useRoles(group.organization_id)
  return (
    <EditForm edit={edit} path={path} stored={group}>
      <Card title={words.common.settings}>
        <Field name="name" label={words.common.name} value={values.name} onValue={name => set({ name })} />
        <Field
          name="description"
          label={words.common.description}
          multiline={2}
          value={values.description}
          onValue={description => set({ description })}
        />
      </Card>
      <Card title={words.groups.roles} lead={words.groups.rolesLead}>
        <RoleChecks roles={roles} chosen={values.roles} onChosen={roles => set({ roles })} />
      </Card>
    </EditForm>
  )
}

const Members = ({ group, onChanged }: { group: Group; onChanged(): void }) => {
  const list = useList<UserAnswer>(`/groups/${group.id}/members`, { limit: 50 })
  const mayChange = may('groups:update')
  const [search, setSearch] = useState('')
  const wanted = useSettled(search.trim())
  const found = useObject<PageOf<UserAnswer>>(
    wanted === ''
      ? undefined
      : `/users?${new URLSearchParams({ search: wanted, limit: '5', organization_id: group.organization_id })}`,
  ).data
  const change = useAction(() => {
    list.reload()
    onChanged()
  })
  const path = (user: UserAnswer) => `/groups/${group.id}/members/${user.id}`
  const person = (user: UserAnswer) => (
    <span>
      <UserLink id={user.id} username={user.username} />
      <span class="hint">{user.email}</span>
    </span>
  )
  return (
    <>
      {mayChange && may('users:read') && (
        <Card title={words.groups.addMember}>
          <Refused problem={change.problem} />
          <SearchField
            label={words.groups.find}
            placeholder={words.users.searchHint}
            value={search}
            onValue={setSearch}
          />
          <ul class="rows">
            {found?.data.map(user => (
              <li key={user.id} class="row">
                {person(user)}
                <button
                  type="button"
                  aria-label={joined([words.groups.addAction, user.username])}
                  disabled={list.items.some(({ id }) => id === user.id)}
                  onClick={() =>
                    void change.run('PUT', path(user), say(words.common.added, { name: user.username }))
                  }
                >
                  {words.groups.addAction}
                </button>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {list.isLoading || list.problem || list.items.length > 0 ? (
        <div>
          <ListCard
            title={words.groups.members}
            list={list}
            empty=""
            row={user => (
              <li key={user.id} class="row">
                {person(user)}
                {mayChange && (
                  <button
                    type="button"
                    aria-label={joined([words.groups.removeAction, user.username])}
                    onClick={() =>
                      void change.run(
                        'DELETE',
                        path(user),
                        say(words.groups.removed, { name: user.username }),
                      )
                    }
                  >
                    {words.groups.removeAction}
                  </button>
                )}
              </li>
            )}
          />
        </div>
      ) : (
        <EmptyCard title={words.groups.members} text={words.groups.noMembers} />
      )}
    </>
  )
}

/** Screen of one group. */
export const GroupScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Group>(`/groups/${encodeURIComponent(id)}`)
  const back = { href: '/console/groups', label: words.nav.groups }
  const group = loaded.data
  if (!group) return <UnloadedScreen title={words.groups.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={group.name}
        back={back}
        lead={
          <>
            <Value text={group.id} />
            <ForeignOrganization id={group.organization_id} />
          </>
        }
      >
        <EventsLink of={group.id} />
      </Heading>
      <Refused problem={loaded.problem} />
      <div class="columns">
        <Form group={group} loaded={loaded} />
        <div class="stack">
          <Members group={group} onChanged={loaded.reload} />
          <AsCode section="groups" path={`/groups/${group.id}`} object={group} />
        </div>
      </div>
      <Deletion
        name={group.name}
        typed={group.name}
        text={words.groups.deleteText}
        path={`/groups/${group.id}`}
        list="/console/groups"
      />
    </>
  )
}
