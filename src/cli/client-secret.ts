import { serverActor } from '#src/directory/access.ts'
import { regenerateSecret } from '#src/directory/clients/service.ts'
import { print } from './print.ts'
import { explained, withInstance } from './user.ts'

/**
 * Replaces the secret of an application. A terminal shows the new secret in a sentence. A program gets only
 * the secret, so that a script can store it.
 */
export const clientSecret = (client_id: string, options: { config?: string }): Promise<void> =>
  withInstance(options, async context => {
    const secret = await explained(regenerateSecret(context, client_id, serverActor))
    print(
      process.stdout.isTTY
        ? `New secret of ${client_id}, shown once. The old one is no longer accepted.\n\n  ${secret}\n`
        : secret,
    )
  })
