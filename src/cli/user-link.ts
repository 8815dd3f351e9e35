import { hostActor } from '#src/audit/record.ts'
import { createSetUpLink, createSignInLink } from '#src/links/links.ts'
import { needsAdmin } from '#src/operations/first-start.ts'
import { printLink, type UserOptions, userNamed, withInstance } from './user.ts'

/**
 * Prints a single-use link for the named user. When no name is given, prints the set-up link of the first
 * administrator.
 */
export const userLink = (name: string | undefined, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    if (name === undefined) {
      if (!(await needsAdmin(context)))
        throw new Error('there is an administrator already: name the user that the link is for')
      return printLink(await createSetUpLink(context), 'the first administrator')
    }
    const user = await userNamed(context, name, options.organization)
    const link = await context.store.write(tx => createSignInLink(context, tx, user, hostActor))
    printLink(link, user.username)
  })
