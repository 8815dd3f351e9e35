import type { Core } from '#src/context.ts'
import { findOrganizationBySlug, type Organization } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { AppError } from '#src/lib/app-error.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { silentLog } from '#src/lib/log.ts'
import { iso, isPlain } from '#src/lib/text.ts'
import { LINK_LIFETIME } from '#src/mail/outbox.ts'
import { openExisting } from './instance.ts'
import { loadServerConfig } from './last-start.ts'
import { print } from './print.ts'

/** Options that the commands for one user and `client create` share. */
export interface UserOptions {
  config?: string
  /** Slug of the organization that the user or client belongs to. */
  organization: string
}

/** Options of the list commands. */
export interface ListOptions {
  config?: string
  /** Slug of the organization. Undefined means all organizations. */
  organization?: string
  json?: boolean
}

/**
 * Awaits a change to a client and rewrites its errors for the command line.
 *
 * @throws Error when the change is refused. When the client does not exist, the message names the command
 * that lists all clients.
 */
export const explained = async <T>(change: Promise<T>): Promise<T> => {
  try {
    return await change
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const { status, message, details } = error
    if (status === 404) throw new Error('no such client: `gatehouse client list` prints all clients')
    throw new Error(details?.map(detail => detail.message).join(' ') ?? message)
  }
}

/**
 * Runs `action` on the instance. The command opens the database itself, so it works while no server runs and
 * before an administrator exists. A running server sees the change within 250 ms. The command asks for no
 * login: a person who can read the database and the master key controls the instance anyway.
 */
export const withInstance = async (
  options: { config?: string },
  action: (context: Core) => Promise<void>,
): Promise<void> => {
  const instance = await openExisting(loadServerConfig(options).config, silentLog)
  try {
    await action(instance)
  } finally {
    await instance.store.close()
  }
}

/**
 * Returns the organization with this slug.
 *
 * @throws Error for an unknown slug
 */
export const organizationNamed = async ({ store }: Core, slug: string): Promise<Organization> => {
  const organization = await findOrganizationBySlug(store, slug)
  if (!organization)
    throw new Error(`no organization has the slug "${slug}": choose another with --organization`)
  return organization
}

/**
 * Finds a user by id. If no user has this id, finds a user of the organization by user name or e-mail
 * address. A user name that looks like an id is therefore found too.
 */
export const userNamed = async (context: Core, name: string, slug: string): Promise<UserRow> => {
  const { id } = await organizationNamed(context, slug)
  const user = await context.store.read(
    async q => (await findUser(q, undefined, name)) ?? findUserForLogin(q, id, name),
  )
  if (!user)
    throw new Error(
      `the organization "${slug}" has no such user: choose another organization with --organization`,
    )
  return user
}

const readLine = async (): Promise<string> => {
  let text = ''
  for await (const chunk of process.stdin) {
    text += chunk
    const end = text.search(/[\r\n]/)
    if (end >= 0) return text.slice(0, end)
  }
  return text
}

/**
 * Prints a link. A terminal shows the link with a sentence that says when it expires. A program gets only the
 * link.
 */
export const printLink = (link: string, whom: string): void => {
  const until = iso(Date.now() + LINK_LIFETIME).slice(11, 16)
  print(
    process.stdout.isTTY
      ? `Open this link to sign in as ${whom}. It works once, until ${until} UTC (${LINK_LIFETIME / MINUTE} minutes):\n\n  ${link}\n`
      : link,
  )
}

/**
 * Refuses a password with control keys, because no login page accepts them. The whole line is read first, so
 * that the shell does not run the rest of it.
 */
const requirePlain = (text: string): string => {
  if (isPlain(text) && !text.includes('\t')) return text
  throw new Error('the terminal sent a control key, such as an arrow, in the password; nothing was changed')
}

/**
 * Reads a password as one line of standard input, because an argument would be visible in the list of
 * processes. A terminal gets a prompt and does not show what is typed. Its keys work as in a shell: Backspace
 * removes a character, Ctrl-U the line, Ctrl-D ends the line.
 *
 * @throws Error after Ctrl-C, and when the typed line contains another control key
 */
export const readPassword = async (): Promise<string> => {
  const { stdin, stderr } = process
  // A chunk may end within a character.
  stdin.setEncoding('utf8')
  if (!stdin.isTTY) return readLine()
  stderr.write('New password: ')
  stdin.setRawMode(true)
  let text = ''
  try {
    for await (const chunk of stdin)
      for (const key of String(chunk)) {
        if ('\r\n\u0004'.includes(key)) return requirePlain(text)
        if (key === '\u0003') throw new Error('stopped')
        if (key === '\u0015') text = ''
        // A character such as an emoji has two units.
        else text = '\b\u007f'.includes(key) ? text.replace(/.$/su, '') : text + key
      }
    return text
  } finally {
    stdin.setRawMode(false)
    stderr.write('\n')
  }
}
