import { hostActor } from '#src/audit/record.ts'
import { forgetFailures } from '#src/sign-in/unlock.ts'
import { print } from './print.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/**
 * Deletes the counts of a user's failed attempts, and of the mails that were requested for the user. The
 * counts of networks stay, so a user in a blocked network may still have to wait.
 */
export const userUnlock = (name: string, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    await context.store.write(tx => forgetFailures(context, tx, user, hostActor))
    print(`the counts of failed attempts of ${user.username} are deleted; a blocked network stays blocked`)
  })
