import { useState } from 'preact/hooks'
import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { Tabs } from '../families.tsx'
import { SearchField } from '../fields.tsx'
import { useList, useSettled } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { useOrganizations } from '../names.tsx'
import { Badge, Empty, Heading, When } from '../parts.tsx'
import { words } from '../words.ts'

/** A client, as the list returns it. */
export type ListedClient = Pick<
  (typeof ClientAnswer)['_output'],
  'client_id' | 'name' | 'type' | 'kind' | 'grant_types' | 'organization_id' | 'created_at'
>

export const kindNames = {
  web: words.clients.web,
  spa: words.clients.spa,
  native: words.clients.native,
  service: words.clients.service,
}

/** Screen of the list of applications. */
export const ClientsScreen = () => {
  const organizationOf = useOrganizations()
  const [typed, setTyped] = useState('')
  const search = useSettled(typed.trim())
  const list = useList<ListedClient>('/clients', { search, limit: 50 })
  return (
    <>
      <Heading title={words.nav.clients} lead={words.clients.lead}>
        <a class="button primary" href="/console/clients/new">
          <Icon name="plus" /> {words.clients.connect}
        </a>
      </Heading>
      <Tabs />
      <div class="filters">
        <SearchField placeholder={words.common.nameOrId} value={typed} onValue={setTyped} />
      </div>
      <ListCard
        list={list}
        empty={
          search === '' ? (
            <Empty title={words.clients.none} icon="clients">
              {words.clients.noneText}
            </Empty>
          ) : (
            <Empty title={words.clients.noneFits} icon="clients" />
          )
        }
        row={client => (
          <li key={client.client_id}>
            <a class="row link" href={`/console/clients/${encodeURIComponent(client.client_id)}`}>
              <span class="tile">
                <Icon name={client.kind ?? 'clients'} />
              </span>
              <span>
                <strong>{client.name}</strong>
                <span class="hint">
                  <code>{client.client_id}</code> {organizationOf(client.organization_id)}
                </span>
              </span>
              <span class="wide">
                <Badge>{client.kind ? kindNames[client.kind] : client.type}</Badge>
              </span>
              <span class="wide muted">
                <When time={client.created_at} />
              </span>
              <Icon name="right" />
            </a>
          </li>
        )}
      />
    </>
  )
}
