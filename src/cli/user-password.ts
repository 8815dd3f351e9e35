import { hostActor } from '#src/audit/record.ts'
import { resetPassword } from '#src/directory/users/reset-password.ts'
import { print } from './print.ts'
import { readPassword, type UserOptions, userNamed, withInstance } from './user.ts'

/** Sets a password from standard input and ends the user's sessions and logins. */
export const userPassword = (name: string, options: UserOptions & { temporary?: boolean }): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    const password = await readPassword()
    const { temporary = false } = options
    await resetPassword(context, user.id, { password, temporary }, hostActor)
    print(`${user.username} has a new password${temporary ? ', to be changed at the next sign-in' : ''}`)
  })
