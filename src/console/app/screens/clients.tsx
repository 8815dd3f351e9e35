import type { ClientAnswer } from '#src/directory/clients/schema.ts'
import { withQuery } from '../api.ts'
import { Tabs } from '../families.tsx'
import { SearchField } from '../fields.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { useOrganizations } from '../names.tsx'
import { OrganizationField } from '../organization-field.tsx'
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
  const { entered, filters, change, isFiltered } = useFilters(['search', 'organization_id'])
  const list = useList<ListedClient>('/clients', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  return (
    <>
      <Heading title={words.nav.clients} lead={words.clients.lead}>
        {may('clients:create') && (
          <a
            class="button primary"
            href={withQuery('/console/clients/+new', { organization_id: filters.organization_id })}
          >
            <Icon name="plus" /> {words.clients.connect}
          </a>
        )}
      </Heading>
      <Tabs />
      <div class="filters">
        <SearchField
          placeholder={words.common.nameOrId}
          value={entered.search}
          onValue={search => change({ search })}
        />
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={list}
        empty={
          isFiltered ? (
            <Empty title={words.clients.noneFits} icon="clients" />
          ) : (
            <Empty title={words.clients.none} icon="clients">
              {words.clients.noneText}
            </Empty>
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
