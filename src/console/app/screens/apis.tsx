import { useState } from 'preact/hooks'
import { Field } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Empty, Heading } from '../parts.tsx'
import { go } from '../router.ts'
import { say, words } from '../words.ts'
import type { Api } from './api.tsx'

const { apis } = words

/** Screen of the list of APIs. */
export const ApisScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Api>('/apis', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const [draft, setDraft] = useState<{ name: string; identifier: string }>()
  return (
    <>
      <Heading title={words.nav.apis} lead={apis.lead}>
        <AddButton
          label={apis.add}
          permission="apis:create"
          onAdd={() => setDraft({ name: '', identifier: '' })}
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
        empty={
          <Empty title={apis.none} icon="apis">
            {apis.noneText}
          </Empty>
        }
        row={api => (
          <li key={api.id}>
            <a class="row link" href={`/console/apis/${api.id}`}>
              <span class="tile">
                <Icon name="apis" />
              </span>
              <span>
                <strong>{api.name}</strong>
                <span class="hint">
                  <code>{api.identifier}</code> {organizationOf(api.organization_id)}
                </span>
              </span>
              <span class="wide muted">
                {say(apis.scopeCount, { count: api.scopes.length })} ·{' '}
                {say(apis.clientCount, { count: api.clients.length })}
              </span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<Api>
          title={apis.add}
          owner={filters.organization_id}
          path="/apis"
          body={draft}
          onMade={({ id }) => {
            go(`/console/apis/${id}`)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Field
            name="name"
            label={apis.name}
            hint={apis.nameHint}
            autocomplete="off"
            value={draft.name}
            onValue={name => setDraft({ ...draft, name })}
          />
          <Field
            name="identifier"
            label={apis.identifier}
            hint={apis.identifierHint}
            required
            autocomplete="off"
            spellcheck={false}
            value={draft.identifier}
            onValue={identifier => setDraft({ ...draft, identifier })}
          />
        </NewDialog>
      )}
    </>
  )
}
