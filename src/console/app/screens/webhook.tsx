import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import type { WebhookDelivery } from '#src/webhooks/schema.ts'
import { useAction } from '../action.ts'
import { AsCode } from '../as-code.tsx'
import { LinesField } from '../collections.tsx'
import { Deletion } from '../deletion.tsx'
import { Check, Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useList, useObject } from '../hooks.ts'
import { ShortList } from '../list.tsx'
import { may } from '../me.ts'
import { ForeignOrganization } from '../names.tsx'
import { Badge, Card, EventsLink, Heading, Refused, Value, When } from '../parts.tsx'
import { RotateButton } from '../rotation.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { eventTitle, say, words } from '../words.ts'
import { StateBadge, type Webhook, type WebhookWithSecret } from './webhooks.tsx'

type Delivery = (typeof WebhookDelivery)['_output']

const text = words.webhooks

const Form = ({ webhook, loaded }: { webhook: Webhook; loaded: Loaded<Webhook> }) => {
  const path = `/webhooks/${webhook.id}`
  const edit = useEdit<Webhook>(path, webhook, loaded.etag, loaded)
  const { values, set } = edit
  return (
    <EditForm edit={edit} path={path} stored={webhook}>
      <Card title={text.settings}>
        <Field name="name" label={text.name} value={values.name} onValue={name => set({ name })} />
        <Field
          name="url"
          label={text.url}
          spellcheck={false}
          value={values.url}
          onValue={url => set({ url })}
        />
        <LinesField
          key={edit.version}
          name="events"
          label={text.events}
          hint={text.eventsHint}
          rows={4}
          lines={values.events}
          onLines={events => set({ events })}
        />
        <Check
          label={text.on}
          hint={text.onHint}
          checked={values.enabled}
          onChecked={enabled => set({ enabled })}
        />
        {webhook.organization_id === DEFAULT_ORGANIZATION && (
          <Check
            label={text.everywhere}
            checked={values.all_organizations}
            onChecked={all_organizations => set({ all_organizations })}
          />
        )}
      </Card>
    </EditForm>
  )
}

/** Shows the latest delivery attempts, each with a button that repeats it. */
const Deliveries = ({ id }: { id: string }) => {
  const path = `/webhooks/${id}/deliveries`
  const list = useList<Delivery>(path, { limit: 50 })
  const again = useAction(list.reload)
  return (
    <ShortList
      title={text.deliveries}
      lead={text.deliveriesLead}
      list={list}
      empty={text.noDeliveries}
      row={({ event_id, event_type, attempted_at, duration, status, failure }) => (
        <li key={`${event_id} ${attempted_at}`} class="row">
          <span>
            <strong>{eventTitle(event_type)}</strong>
            <span class="hint">
              {failure ?? say(text.took, { ms: duration })} · <When time={attempted_at} />
            </span>
          </span>
          <Badge tone={failure ? 'bad' : 'good'}>{status ?? text.noAnswer}</Badge>
          {may('webhooks:update') && (
            <button
              type="button"
              aria-label={say(text.sendOne, { event: eventTitle(event_type) })}
              onClick={() => void again.run('POST', path, text.sent, { event_id })}
            >
              {text.send}
            </button>
          )}
        </li>
      )}
    >
      <Refused problem={again.problem} />
    </ShortList>
  )
}

/**
 * Screen of one webhook. The option to send the events of all organizations is shown only in the default
 * organization, because a tenant must not see the events of other tenants.
 */
export const WebhookScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Webhook>(`/webhooks/${encodeURIComponent(id)}`)
  const back = { href: '/console/webhooks', label: words.nav.webhooks }
  const webhook = loaded.data
  if (!webhook) return <UnloadedScreen title={text.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={webhook.name}
        back={back}
        badge={<StateBadge of={webhook} />}
        lead={
          <>
            {webhook.failure ?? <Value text={webhook.url} />}{' '}
            <ForeignOrganization id={webhook.organization_id} />
          </>
        }
      >
        <EventsLink of={webhook.id} />
        <RotateButton<WebhookWithSecret>
          text={text.rotateText}
          path={`/webhooks/${webhook.id}/rotate-secret`}
          body={{}}
          shown={
            webhook.public_key
              ? { title: text.publicKey, text: text.publicKeyText }
              : { title: text.secret, text: text.secretText }
          }
          secretOf={({ secret, public_key }) => secret ?? public_key ?? ''}
          onSecret={loaded.reload}
        />
      </Heading>
      <div class="columns">
        <Form webhook={webhook} loaded={loaded} />
        <div class="stack">
          {webhook.public_key && (
            <Card title={text.publicKey} lead={text.publicKeyText}>
              <Value text={webhook.public_key} />
            </Card>
          )}
          <Deliveries id={webhook.id} />
          <AsCode section="webhooks" path={`/webhooks/${webhook.id}`} object={webhook} />
        </div>
      </div>
      <Deletion
        name={webhook.name}
        typed={webhook.name}
        text={text.deleteText}
        path={`/webhooks/${webhook.id}`}
        list="/console/webhooks"
      />
    </>
  )
}
