import { hostActor } from '#src/audit/record.ts'
import { ConfigError } from '#src/config.ts'
import { serverActor } from '#src/directory/access.ts'
import { inviteUser } from '#src/directory/invitations/service.ts'
import { CreateUser } from '#src/directory/users/schema.ts'
import { createUser } from '#src/directory/users/service.ts'
import { createSignInLink } from '#src/links/links.ts'
import { print } from './print.ts'
import { organizationNamed, printLink, readPassword, type UserOptions, withInstance } from './user.ts'

interface Options extends UserOptions {
  email: string
  firstName?: string
  lastName?: string
  role?: string[]
  password?: boolean
  invite?: boolean
}

/**
 * Creates a user. With `--password` the command reads the password from standard input. With `--invite` it
 * mails an invitation. Otherwise it prints a sign-in link, with which the user chooses a password that nobody
 * else knows.
 */
export const userCreate = (username: string, options: Options): Promise<void> =>
  withInstance(options, async context => {
    if (options.invite && !context.mail)
      throw new ConfigError(
        '--invite: set smtp_url and mail_from for this command too, as they are set for the server.',
      )
    const { id: organization_id } = await organizationNamed(context, options.organization)
    const given = {
      username,
      email: options.email,
      first_name: options.firstName ?? '',
      last_name: options.lastName ?? '',
      organization_id,
      ...(options.role && { roles: options.role }),
    }
    const parsed = CreateUser.omit({ password: true }).safeParse(given)
    if (!parsed.success)
      throw new Error(
        parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join(' '),
      )
    const secret = options.password ? { password: await readPassword() } : { password_hash: null }
    const user = await createUser(context, { ...parsed.data, ...secret }, hostActor, async (tx, row) => {
      if (options.invite) await inviteUser(context, tx, row, 'mail', serverActor)
    })
    if (options.password || options.invite) print(user.id)
    else
      printLink(
        await context.store.write(tx => createSignInLink(context, tx, user, hostActor)),
        user.username,
      )
  })
