import { hostActor } from '#src/audit/record.ts'
import { createSetUpLink, createSignInLink } from '#src/links/links.ts'
import { needsAdmin } from '#src/operations/first-start.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/** Prints a single-use link for a user, or for the first administrator without a name. */
export const userLink = (name: string | undefined, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    if (name === undefined) {
      if (!(await needsAdmin(context)))
        throw new Error('there is an administrator already: name the user that the link is for')
      return console.log(await createSetUpLink(context))
    }
    const user = await userNamed(context, name, options.organization)
    console.log(await context.store.write(tx => createSignInLink(context, tx, user, hostActor)))
  })
