import { hostActor } from '#src/audit/record.ts'
import { forgetFailures } from '#src/sign-in/unlock.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/** Deletes the counts of failed attempts, so that the user need not wait. */
export const userUnlock = (name: string, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    await context.store.write(tx => forgetFailures(context, tx, user, hostActor))
    console.log(`${user.username} may try again at once`)
  })
