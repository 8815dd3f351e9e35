import { serverActor } from '#src/directory/access.ts'
import { deleteClient } from '#src/directory/clients/service.ts'
import { print } from './print.ts'
import { explained, withInstance } from './user.ts'

/** Deletes an application, and ends its sessions and refresh tokens. */
export const clientDelete = (client_id: string, options: { config?: string }): Promise<void> =>
  withInstance(options, async context => {
    await explained(deleteClient(context, client_id, serverActor))
    print(`Deleted ${client_id}. Its sessions have ended; access tokens are valid until they expire.`)
  })
