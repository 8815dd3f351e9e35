import { useState } from 'preact/hooks'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { Entries, Picker } from '../collections.tsx'
import { Field } from '../fields.tsx'
import { useObject } from '../hooks.ts'
import { type Option, useOptions } from '../options.ts'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

type Client = (typeof ClientAnswer)['_output']
type Organization = (typeof OrganizationAnswer)['_output']

/** Edits the additional claims of an application's tokens. */
export const Claims = (props: {
  organization_id: string
  claims: Client['claims']
  onClaims(claims: Client['claims']): void
}) => {
  const text = words.claims
  const organization = useObject<Organization>(`/organizations/${props.organization_id}`).data
  const isEditedByUsers = (from: string): boolean =>
    (organization?.settings.user_attributes ?? []).some(
      ({ name, editable }) => editable === 'user' && `${from}.`.startsWith(`user.attributes.${name}.`),
    )
  const [rows, setRows] = useState(() =>
    Object.entries(props.claims).map(([name, rule]) =>
      typeof rule === 'string' ? { name, from: rule, scope: '' } : { name, ...rule },
    ),
  )
  const change = (rows: { name: string; from: string; scope: string }[]) => {
    setRows(rows)
    const given = rows.filter(({ name, from }) => name !== '' || from !== '')
    props.onClaims(
      Object.fromEntries(given.map(({ name, from, scope }) => [name, scope === '' ? from : { from, scope }])),
    )
  }
  const isTwice = (name: string, index: number): boolean =>
    name !== '' && rows.findIndex(row => row.name === name) < index
  return (
    <Card title={text.title} lead={text.lead}>
      <Entries
        items={rows}
        onItems={change}
        fresh={{ name: '', from: '', scope: '' }}
        add={text.add}
        empty={text.none}
        label={({ name }) => name || text.fresh}
      >
        {({ name, from, scope }, set, index) => (
          <>
            <div class="pair">
              <Field
                name={`claim-${index}`}
                label={text.name}
                autocomplete="off"
                spellcheck={false}
                value={name}
                bad={isTwice(name, index) ? text.twice : undefined}
                onValue={name => set({ name })}
              />
              <Field
                name={`scope-${index}`}
                label={text.scope}
                hint={text.scopeHint}
                autocomplete="off"
                spellcheck={false}
                value={scope}
                onValue={scope => set({ scope: scope.trim() })}
              />
            </div>
            <Field
              name={`claims.${name}`}
              label={text.from}
              hint={isEditedByUsers(from) ? text.fromUsers : text.fromHint}
              autocomplete="off"
              spellcheck={false}
              value={from}
              onValue={from => set({ from })}
            />
          </>
        )}
      </Entries>
    </Card>
  )
}

/**
 * Edits the roles and groups that admit users to the application. A user needs at least one of these roles or
 * groups to sign in. If both lists are empty, every user may sign in.
 */
export const Admission = (props: { client: Client; onChange(change: Partial<Client>): void }) => {
  const { allowed_roles, allowed_groups, organization_id } = props.client
  const text = words.admission
  const named = ({ name }: { name: string }): Option => [name, name]
  const roles = useOptions('/roles', organization_id, named)
  const groups = useOptions('/groups', organization_id, named)
  const isOpen = allowed_roles.length + allowed_groups.length === 0
  return (
    <Card title={text.title} lead={isOpen ? text.everyone : text.lead}>
      <Picker
        name="allowed_roles"
        label={text.roles}
        chosen={allowed_roles}
        options={roles}
        onChosen={allowed_roles => props.onChange({ allowed_roles })}
      />
      <Picker
        name="allowed_groups"
        label={text.groups}
        chosen={allowed_groups}
        options={groups}
        onChosen={allowed_groups => props.onChange({ allowed_groups })}
      />
    </Card>
  )
}
