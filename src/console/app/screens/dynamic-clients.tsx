import { useState } from 'preact/hooks'
import type { dynamicClientItem } from '#src/directory/clients/dynamic-clients.ts'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { asProblem, callApi, type Problem, withQuery } from '../api.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { type Fact, Facts } from '../facts.tsx'
import { Tabs } from '../families.tsx'
import { Choice, Field } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList, useObject } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { NewDialog } from '../new-dialog.tsx'
import { Once } from '../once.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { AddButton, Badge, Empty, Heading, Refused, Value } from '../parts.tsx'
import { person } from '../session.ts'
import { show } from '../toast.tsx'
import { fullDate, say, withUnit, words } from '../words.ts'

type DynamicClient = ReturnType<typeof dynamicClientItem>
type Organization = (typeof OrganizationAnswer)['_output']

const text = words.dynamic
const HOUR = 3600

const timeFact = (name: string, time: string | null): Fact[] =>
  time === null ? [] : [[name, fullDate(time)]]

const ClientFacts = ({ of: client }: { of: DynamicClient }) => {
  const facts: Fact[] = [
    [words.sessions.clientId, <Value key="id" text={client.client_id} />],
    [
      words.client.redirectUris,
      client.redirect_uris.map(uri => (
        <div key={uri}>
          <code>{uri}</code>
        </div>
      )),
    ],
    ...timeFact(text.first, client.created_at),
    ...timeFact(text.changed, client.changed_at),
    ...timeFact(text.lastUsed, client.last_used_at),
  ]
  return <Facts facts={facts} />
}

/** Shows a client in one line that expands to its facts and actions. */
const Row = (props: {
  client: DynamicClient
  organization_id: string
  isBlocked: boolean
  setBlocked: ((isBlocked: boolean) => void) | undefined
}) => {
  const { client, isBlocked, setBlocked } = props
  const [isOpen, setOpen] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const sessions = withQuery('/sessions', {
    client_id: client.client_id,
    organization_id: props.organization_id,
  })
  return (
    <li class={isOpen ? 'event open' : 'event'}>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={isBlocked ? 'dot bad' : 'dot good'} />
        <span class="event-title">{client.name}</span>
        <span class="event-about">{client.client_id}</span>
        <span class="event-address">{text.sources[client.source]}</span>
        <span class="event-time">{isBlocked && <Badge tone="bad">{text.blocked}</Badge>}</span>
        <Icon name="right" />
      </button>
      {isOpen && (
        <div class="event-more">
          <ClientFacts of={client} />
          <div class="buttons">
            {may('sessions:revoke') && (
              <button type="button" onClick={() => setAsked(true)}>
                {text.end}
              </button>
            )}
            {setBlocked && (
              <button type="button" class={isBlocked ? '' : 'danger'} onClick={() => setBlocked(!isBlocked)}>
                {isBlocked ? text.unblock : text.block}
              </button>
            )}
          </div>
        </div>
      )}
      {isAsked && (
        <ConfirmCall
          title={say(text.endTitle, { name: client.name })}
          text={text.endText}
          action={text.end}
          method="DELETE"
          path={sessions}
          done={words.sessions.allEnded}
          onDone={() => setAsked(false)}
          onClose={() => setAsked(false)}
        />
      )}
    </li>
  )
}

interface Token {
  token: string
}

/** Creates an initial access token and shows it once. */
const NewToken = ({ owner, onClose }: { owner: string; onClose(): void }) => {
  const [draft, setDraft] = useState({ uses: '1', hours: 24 })
  const [made, setMade] = useState<Token>()
  if (made) return <Once title={text.token} text={text.tokenText} value={made.token} onClose={onClose} />
  const { uses, hours } = draft
  return (
    <NewDialog<Token>
      title={text.newToken}
      owner={owner}
      path="/initial-access-tokens"
      body={{ uses: Number(uses), expires_in: hours * HOUR }}
      onMade={setMade}
      onClose={onClose}
    >
      <p>{text.newTokenText}</p>
      <Field name="uses" label={text.uses} value={uses} onValue={uses => setDraft({ ...draft, uses })} />
      <Choice
        label={words.common.validFor}
        name="expires_in"
        value={String(hours)}
        options={[1, 24, 168, 720, 2160].map(each => [
          String(each),
          each < 24 ? withUnit(each, 'hour') : withUnit(each / 24, 'day'),
        ])}
        onValue={hours => setDraft({ ...draft, hours: Number(hours) })}
      />
    </NewDialog>
  )
}

/**
 * Returns the organization, the ids of the clients that it blocks, and `setBlocked`, which blocks or unblocks
 * a client. `organization` is undefined until it is read, and for a caller who may not read organizations.
 */
const useBlocked = (organization_id: string) => {
  const path = `/organizations/${encodeURIComponent(organization_id)}`
  const loaded = useObject<Organization>(may('organizations:read') ? path : undefined)
  const [problem, setProblem] = useState<Problem>()
  const blocked = loaded.data?.settings.blocked_clients ?? []
  const setBlocked = async (client_id: string, isBlocked: boolean): Promise<void> => {
    const blocked_clients = isBlocked ? [...blocked, client_id] : blocked.filter(id => id !== client_id)
    try {
      setProblem(undefined)
      const body = { settings: { blocked_clients } }
      const answer = await callApi<Organization>('PUT', path, { body, if_match: loaded.etag })
      loaded.set(answer.data, answer.etag)
      show(isBlocked ? text.isBlocked : text.isUnblocked)
    } catch (error) {
      setProblem(asProblem(error))
      loaded.reload()
    }
  }
  return { organization: loaded.data, problem, blocked, setBlocked }
}

/** Screen of the list of dynamic clients. */
export const DynamicClientsScreen = () => {
  const { entered, filters, change } = useFilters(['organization_id', 'source'])
  const [isNew, setNew] = useState(false)
  const organization_id = filters.organization_id || (person.value?.organization_id ?? '')
  const list = useList<DynamicClient>('/dynamic-clients', { ...filters, organization_id, limit: 50 })
  const { organization, problem, blocked, setBlocked } = useBlocked(organization_id)
  const mayBlock = organization !== undefined && may('organizations:update')
  const { client_registration = 'off', client_metadata_documents = 'off' } = organization?.settings ?? {}
  return (
    <>
      <Heading title={words.nav.dynamicClients} lead={text.lead}>
        {organization && (
          <a class="button" href={`/console/organizations/${organization.id}#dynamic`}>
            {text.policies}
          </a>
        )}
        <AddButton label={text.newToken} permission="clients:create" onAdd={() => setNew(true)} />
      </Heading>
      <Tabs />
      <div class="filters">
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
        <Choice
          label={text.source}
          value={entered.source}
          options={[
            ['', words.common.all],
            ['registration', text.sources.registration],
            ['document', text.sources.document],
          ]}
          onValue={source => change({ source })}
        />
      </div>
      <Refused problem={problem} />
      <ListCard
        list={list}
        empty={
          <Empty title={text.none} icon="clients">
            {organization && client_registration === 'off' && client_metadata_documents === 'off'
              ? text.offText
              : text.noneText}
          </Empty>
        }
        row={client => (
          <Row
            key={client.client_id}
            client={client}
            organization_id={organization_id}
            isBlocked={blocked.includes(client.client_id)}
            setBlocked={mayBlock ? isBlocked => void setBlocked(client.client_id, isBlocked) : undefined}
          />
        )}
      />
      {isNew && <NewToken owner={filters.organization_id} onClose={() => setNew(false)} />}
    </>
  )
}
