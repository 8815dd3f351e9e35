import { hostActor } from '#src/audit/record.ts'
import { resetPassword } from '#src/directory/users/reset-password.ts'
import { readPassword, type UserOptions, userNamed, withInstance } from './user.ts'

/** A new password from standard input; all that the user had open ends. */
export const userPassword = (name: string, options: UserOptions & { temporary?: boolean }): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    const password = await readPassword()
    const { temporary = false } = options
    await resetPassword(context, user.id, { password, temporary }, hostActor)
    console.log(`${user.username} has a new password${temporary ? ', to be changed at the next login' : ''}`)
  })
