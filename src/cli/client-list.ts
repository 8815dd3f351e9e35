import { clientItem } from '#src/directory/clients/schema.ts'
import { listClients } from '#src/directory/clients/store.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { printList } from './list.ts'
import { type ListOptions, organizationNamed, withInstance } from './user.ts'

/** Prints the registered applications, oldest first. */
export const clientList = (options: ListOptions): Promise<void> =>
  withInstance(options, async context => {
    const { store } = context
    const { organization: slug } = options
    const organization_id = slug === undefined ? undefined : (await organizationNamed(context, slug)).id
    await printList({
      json: options.json,
      fetch: (after, limit) =>
        store.read(q => listClients(q, { organization_id, type: undefined }, { order: 'asc', after, limit })),
      keyset: client => [client.created_at, client.client_id],
      item: clientItem,
      titles: ['CLIENT ID', 'KIND', 'ORGANIZATION', 'REDIRECT URL'],
      cells: async client => [
        client.client_id,
        client.kind ?? client.type,
        (await findOrganization(store, client.organization_id))?.slug ?? '',
        client.redirect_uris.join(' '),
      ],
    })
  })
