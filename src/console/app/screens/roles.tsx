import { useEffect, useState } from 'preact/hooks'
import type { RoleAnswer } from '#src/directory/roles/schema.ts'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { AsCode } from '../as-code.tsx'
import { Deletion } from '../deletion.tsx'
import { Check, Choice, Field, SearchField } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useList, useObject } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { EmptyCard, ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { ForeignOrganization, useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Badge, Card, Empty, EventsLink, Heading, Value } from '../parts.tsx'
import { go } from '../router.ts'
import { person } from '../session.ts'
import { UnloadedScreen } from '../unloaded.tsx'
import { joined, say, words } from '../words.ts'
import { Givers, NotGiven } from './user-access.tsx'

type Role = (typeof RoleAnswer)['_output']

const { permissions } = consoleLimits()
const resources = [...new Set(permissions.map(name => name.split(':')[0] ?? ''))]
const resourceNames: Record<string, string> = {
  ...words.nav,
  identity_providers: words.nav.providers,
  profile: words.user.profile,
}

/** Screen of the list of roles. */
export const RolesScreen = () => {
  const { entered, filters, change } = useFilters(['search', 'organization_id', 'permission'])
  const { permission, ...asked } = filters
  const list = useList<Role>('/roles', { ...asked, limit: 100 })
  const organizationOf = useOrganizations(list.items, true)
  const isForeign = (role: Role) => role.organization_id !== person.value?.organization_id
  const items = list.items
    .filter(role => permission === '' || role.permissions.some(name => name === permission || name === '*'))
    .sort((one, other) => Number(isForeign(one)) - Number(isForeign(other)))
  // The API has no filter by permission, so further pages are read until a page has a matching role.
  const isPassedOver = items.length === 0 && list.hasMore && !list.problem
  useEffect(() => {
    if (isPassedOver) list.more()
  }, [isPassedOver, list.items.length])
  const [draft, setDraft] = useState<{ name: string; description: string }>()
  return (
    <>
      <Heading title={words.nav.roles} lead={words.roles.lead}>
        <AddButton
          label={words.roles.add}
          permission="roles:create"
          onAdd={() => setDraft({ name: '', description: '' })}
        />
      </Heading>
      <div class="filters">
        <SearchField
          placeholder={words.common.name}
          value={entered.search}
          onValue={search => change({ search })}
        />
        <Choice
          label={words.access.withPermission}
          value={entered.permission}
          options={[
            ['', words.access.anyPermission],
            ...permissions.map((name): [string, string] => [name, name]),
          ]}
          onValue={permission => change({ permission })}
        />
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={{ ...list, items, isLoading: list.isLoading || isPassedOver }}
        titleOf={({ organization_id }) => organizationOf(organization_id) ?? organization_id}
        empty={<Empty title={permission ? words.access.noneWith : words.palette.none} icon="roles" />}
        row={role => (
          <li key={role.id}>
            <a class="row link" href={`/console/roles/${role.id}`}>
              <span>
                <strong>{role.name}</strong>
                <span class="hint">
                  {joined([role.description || role.permissions.slice(0, 4).join(', ')])}
                </span>
              </span>
              {role.built_in && <Badge>{words.roles.builtIn}</Badge>}
              <span class="wide muted">{say(words.common.users, { count: role.user_count })}</span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<Role>
          title={words.roles.add}
          owner={filters.organization_id}
          path="/roles"
          body={{ ...draft, permissions: [] }}
          onMade={role => {
            go(`/console/roles/${role.id}`)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Field
            name="name"
            label={words.common.name}
            hint={words.roles.nameHint}
            autocomplete="off"
            value={draft.name}
            onValue={name => setDraft({ ...draft, name })}
          />
          <Field
            name="description"
            label={words.common.description}
            value={draft.description}
            onValue={description => setDraft({ ...draft, description })}
          />
        </NewDialog>
      )}
    </>
  )
}

const Form = ({ role, loaded }: { role: Role; loaded: Loaded<Role> }) => {
  const path = `/roles/${role.id}`
  const edit = useEdit<Role>(path, role, loaded.etag, loaded)
  const { values, set } = edit
  const has = (name: string) => values.permissions.some(each => each === name || each === '*')
  return (
    <EditForm edit={edit} path={path} stored={role} isFixed={role.built_in}>
      <Card title={words.common.description}>
        <Field
          name="description"
          label={words.roles.shown}
          multiline={2}
          value={values.description}
          onValue={description => set({ description })}
        />
      </Card>
      <Card title={words.roles.permissions} lead={role.built_in ? undefined : words.roles.permissionsLead}>
        <div class="permissions">
          {resources.map(resource => (
            <fieldset key={resource}>
              <legend>{resourceNames[resource] ?? resource}</legend>
              {permissions
                .filter(name => name.startsWith(`${resource}:`))
                .map(name => (
                  <Check
                    key={name}
                    label={name.slice(resource.length + 1)}
                    checked={has(name)}
                    onChecked={isOn =>
                      set({ permissions: permissions.filter(each => (each === name ? isOn : has(each))) })
                    }
                  />
                ))}
            </fieldset>
          ))}
        </div>
      </Card>
    </EditForm>
  )
}

/** Lists the users who have the role directly, not through a group. */
const Holders = ({ role: { name, organization_id } }: { role: Role }) => {
  const list = useList<UserAnswer>('/users', { role: name, organization_id, limit: 20 })
  const { holders, holdersLead, noHolders, giveUser } = words.access
  if (!list.isLoading && !list.problem && list.items.length === 0)
    return <EmptyCard title={holders} text={<NotGiven text={noHolders} by="users" action={giveUser} />} />
  return (
    <div>
      <ListCard
        title={holders}
        lead={holdersLead}
        list={list}
        empty=""
        row={user => (
          <li key={user.id}>
            <a class="row link" href={`/console/users/${user.id}`}>
              <span>
                <strong>{user.username}</strong>
                <span class="hint">{user.email}</span>
              </span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
    </div>
  )
}

/** Screen of one role. A built-in role is not changed or deleted, because every organization relies on it. */
export const RoleScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Role>(`/roles/${encodeURIComponent(id)}`)
  const back = { href: '/console/roles', label: words.nav.roles }
  const role = loaded.data
  if (!role) return <UnloadedScreen title={words.roles.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={role.name}
        back={back}
        badge={role.built_in ? <Badge>{words.roles.builtIn}</Badge> : undefined}
        lead={
          <>
            <Value text={role.id} />
            <ForeignOrganization id={role.organization_id} />
          </>
        }
      >
        <EventsLink of={role.id} />
      </Heading>
      <div class="columns">
        <Form role={role} loaded={loaded} />
        <div class="stack">
          {may('users:read') && <Holders role={role} />}
          {may('groups:read') && <Givers role={role.name} organization_id={role.organization_id} />}
          <AsCode section="roles" path={`/roles/${role.id}`} object={role} />
        </div>
      </div>
      {!role.built_in && (
        <Deletion
          name={role.name}
          typed={role.name}
          text={words.roles.deleteText}
          path={`/roles/${role.id}`}
          list="/console/roles"
        />
      )}
    </>
  )
}
