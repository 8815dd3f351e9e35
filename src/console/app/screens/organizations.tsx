import { useState } from 'preact/hooks'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { useList, useSettled } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { Empty, Field, Heading, Icon } from '../parts.tsx'
import { announce, go } from '../router.ts'
import { words } from '../words.ts'

type Organization = (typeof OrganizationAnswer)['_output'] & { user_count?: number }

const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')

export const OrganizationsScreen = () => {
  const [search, setSearch] = useState('')
  const list = useList<Organization>('/organizations', { search: useSettled(search.trim()), limit: 50 })
  const [draft, setDraft] = useState<{ name: string; slug?: string }>()
  const body = draft && { name: draft.name, slug: draft.slug ?? slugOf(draft.name) }
  return (
    <>
      <Heading
        title={words.nav.organizations}
        lead="Tenants with users, roles and applications of their own."
      >
        <button type="button" class="primary" onClick={() => setDraft({ name: '' })}>
          <Icon name="plus" /> Add an organization
        </button>
      </Heading>
      <div class="filters">
        <label class="search">
          <Icon name="search" />
          <span class="unseen">Search</span>
          <input
            type="search"
            placeholder="Name or slug"
            value={search}
            onInput={event => setSearch(event.currentTarget.value)}
          />
        </label>
      </div>
      <ListCard
        list={list}
        empty={<Empty title="No organization fits" icon="organizations" />}
        row={organization => (
          <li key={organization.id}>
            <a class="row link" href={`/console/organizations/${organization.slug}`}>
              <span>
                <strong>{organization.display_name}</strong>
                <code class="hint">{organization.slug}</code>
              </span>
              <span class="wide muted">{words.common.users(organization.user_count ?? 0)}</span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {body && (
        <NewDialog<Organization>
          title="Add an organization"
          path="/organizations"
          body={body}
          onMade={({ slug }) => {
            go(`/console/organizations/${slug}`)
            announce()
          }}
          onClose={() => setDraft(undefined)}
        >
          {problem => (
            <>
              <Field
                name="name"
                label="Name"
                required
                autocomplete="off"
                value={body.name}
                problem={problem}
                onValue={name => setDraft({ ...draft, name })}
              />
              <Field
                name="slug"
                label="Slug"
                hint="Part of addresses: small letters, digits and hyphens."
                required
                autocomplete="off"
                spellcheck={false}
                value={body.slug}
                problem={problem}
                onValue={slug => setDraft({ ...body, slug })}
              />
            </>
          )}
        </NewDialog>
      )}
    </>
  )
}
