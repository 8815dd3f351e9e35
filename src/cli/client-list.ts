import { dynamicClientItem } from '#src/directory/clients/dynamic-clients.ts'
import { listDynamicClients } from '#src/directory/clients/dynamic-store.ts'
import { clientItem } from '#src/directory/clients/schema.ts'
import { listClients } from '#src/directory/clients/store.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { printList } from './list.ts'
import { type ListOptions, organizationNamed, withInstance } from './user.ts'

interface ClientListOptions extends ListOptions {
  dynamic?: boolean
}

/**
 * Prints the applications that administrators registered, oldest first. With `dynamic` the command prints the
 * dynamic clients instead.
 */
export const clientList = (options: ClientListOptions): Promise<void> =>
  withInstance(options, async context => {
    const { store } = context
    const { organization: slug, json } = options
    const organization_id = slug === undefined ? undefined : (await organizationNamed(context, slug)).id
    const order = 'asc'
    if (options.dynamic)
      return printList({
        json,
        fetch: (after, limit) =>
          store.read(q =>
            listDynamicClients(q, { organization_id, source: undefined }, { order, after, limit }),
          ),
        keyset: client => [client.created_at, client.client_id],
        item: client => dynamicClientItem(client, undefined),
        titles: ['CLIENT ID', 'NAME', 'LAST USED', 'REDIRECT URL'],
        cells: client => {
          const { client_id, name, last_used_at, redirect_uris } = dynamicClientItem(client, undefined)
          return [client_id, name, last_used_at ?? 'never', redirect_uris.join(' ')]
        },
      })
    await printList({
      json,
      fetch: (after, limit) =>
        store.read(q => listClients(q, { organization_id, type: undefined }, { order, after, limit })),
      keyset: client => [client.created_at, client.client_id],
      item: client => clientItem(client),
      titles: ['CLIENT ID', 'KIND', 'ORGANIZATION', 'REDIRECT URL'],
      cells: async client => [
        client.client_id,
        client.kind ?? client.type,
        (await findOrganization(store, client.organization_id))?.slug ?? '',
        client.redirect_uris.join(' '),
      ],
    })
  })
