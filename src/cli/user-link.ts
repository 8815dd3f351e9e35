import { createSetUpLink, createSignInLink } from '#src/account/links.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/** Being locked out ends here: a single-use link for a user, or for the first admin when no name is given. */
export const userLink = (name: string | undefined, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    console.log(
      name === undefined
        ? await createSetUpLink(context)
        : await createSignInLink(context, await userNamed(context, name, options.organization)),
    )
  })
