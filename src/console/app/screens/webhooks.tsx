import { useState } from 'preact/hooks'
import type { WebhookAnswer } from '#src/webhooks/schema.ts'
import { Field } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { useOrganizations } from '../names.tsx'
import { NewDialog } from '../new-dialog.tsx'
import { Once } from '../once.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Badge, Empty, Heading } from '../parts.tsx'
import { go } from '../router.ts'
import { joined, words } from '../words.ts'

export type Webhook = (typeof WebhookAnswer)['_output']
export type WebhookWithSecret = Webhook & { secret: string | null }

const text = words.webhooks

const linesOf = (typed: string): string[] => typed.split(/\s+/).filter(Boolean)

/** Shows whether a webhook works, fails or is disabled. */
export const StateBadge = ({ of: { enabled, disabled_reason, failing_since } }: { of: Webhook }) =>
  disabled_reason ? (
    <Badge tone="bad">{text.reasons[disabled_reason]}</Badge>
  ) : !enabled ? (
    <Badge>{text.off}</Badge>
  ) : failing_since ? (
    <Badge tone="warn">{text.failing}</Badge>
  ) : (
    <Badge tone="good">{text.on}</Badge>
  )

/** Screen of the list of webhooks. */
export const WebhooksScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id'])
  const list = useList<Webhook>('/webhooks', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const [draft, setDraft] = useState<{ name: string; url: string; events: string }>()
  const [made, setMade] = useState<WebhookWithSecret>()
  const show = ({ id }: Webhook) => {
    go(`/console/webhooks/${id}`)
  }
  return (
    <>
      <Heading title={words.nav.webhooks} lead={text.lead}>
        <AddButton
          label={text.add}
          permission="webhooks:create"
          onAdd={() => setDraft({ name: '', url: '', events: 'user.*' })}
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
          <Empty title={text.none} icon="webhooks">
            {text.noneText}
          </Empty>
        }
        row={webhook => (
          <li key={webhook.id}>
            <a class="row link" href={`/console/webhooks/${webhook.id}`}>
              <span>
                <strong>{webhook.name}</strong>
                <span class="hint">{joined([organizationOf(webhook.organization_id), webhook.url])}</span>
              </span>
              <StateBadge of={webhook} />
              <Icon name="right" />
            </a>
          </li>
        )}
      />
      {draft && (
        <NewDialog<WebhookWithSecret>
          title={text.add}
          owner={filters.organization_id}
          path="/webhooks"
          body={{ ...draft, events: linesOf(draft.events) }}
          onMade={webhook => {
            setDraft(undefined)
            if (webhook.secret) setMade(webhook)
            else show(webhook)
          }}
          onClose={() => setDraft(undefined)}
        >
          <Field
            name="name"
            label={text.name}
            autocomplete="off"
            value={draft.name}
            onValue={name => setDraft({ ...draft, name })}
          />
          <Field
            name="url"
            label={text.url}
            required
            autocomplete="off"
            spellcheck={false}
            value={draft.url}
            onValue={url => setDraft({ ...draft, url })}
          />
          <Field
            name="events"
            label={text.events}
            hint={text.eventsHint}
            required
            multiline={3}
            spellcheck={false}
            value={draft.events}
            onValue={events => setDraft({ ...draft, events })}
          />
        </NewDialog>
      )}
      {made?.secret && (
        <Once title={text.secret} text={text.secretText} value={made.secret} onClose={() => show(made)} />
      )}
    </>
  )
}
