import { useState } from 'preact/hooks'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { Field, SearchField } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { AddButton, Empty, Heading } from '../parts.tsx'
import { go } from '../router.ts'
import { slugOf } from '../slug.ts'
import { say, words } from '../words.ts'

type Organization = (typeof OrganizationAnswer)['_output'] & { user_count?: number }

/** Screen of the list of organizations. */
export const OrganizationsScreen = () => {
  const { entered, filters, change } = useFilters(['search'])
  const list = useList<Organization>('/organizations', { ...filters, limit: 50 })
  const [draft, setDraft] = useState<{ name: string; slug?: string }>()
  const body = draft && { name: draft.name, slug: draft.slug ?? slugOf(draft.name) }
  return (
    <>
      <Heading title={words.nav.organizations} lead={words.organization.lead}>
        <AddButton
          label={words.organization.add}
          permission="organizations:create"
          onAdd={() => setDraft({ name: '' })}
        />
      </Heading>
      <div class="filters">
        <SearchField
          placeholder={words.organization.searchHint}
          value={entered.search}
          onValue={search => change({ search })}
        />
      </div>
      <ListCard
        list={list}
        empty={<Empty title={words.organization.noneFits} icon="organizations" />}
        row={organization => (
          <li key={organization.id}>
            <a class="row link" href={`/console/organizations/${organization.id}`}>
              <span>
                <strong>{organization.display_name}</strong>
                <span class="hint">
                  {organization.name !== organization.display_name && `${organization.name} · `}
                  <code>{organization.slug}</code>
                </span>
              </span>
              <span class="wide muted">
                {say(words.common.users, { count: organization.user_count ?? 0 })}
              </span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {body && (
        <NewDialog<Organization>
          title={words.organization.add}
          path="/organizations"
          body={body}
          onMade={({ id }) => {
            go(`/console/organizations/${id}`)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Field
            name="name"
            label={words.common.name}
            autocomplete="off"
            value={body.name}
            onValue={name => setDraft({ ...draft, name })}
          />
          <Field
            name="slug"
            label={words.organization.slug}
            hint={words.organization.slugHint}
            autocomplete="off"
            spellcheck={false}
            value={body.slug}
            onValue={slug => setDraft({ ...body, slug })}
          />
        </NewDialog>
      )}
    </>
  )
}
