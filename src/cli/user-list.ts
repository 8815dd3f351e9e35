import { keysetOf } from '#src/directory/users/list-store.ts'
import { userAnswer } from '#src/directory/users/schema.ts'
import { listUsers } from '#src/directory/users/search-store.ts'
import { roleNamesOf, type UserWithRoles } from '#src/directory/users/store.ts'
import { printList } from './list.ts'
import { type ListOptions, organizationNamed, withInstance } from './user.ts'

/**
 * Prints all users. With `search`, prints only users whose names or address contain each word of `search`.
 * Each list command prints the oldest rows first, so that new rows appear at the end of its output.
 */
export const userList = (options: ListOptions & { search?: string }): Promise<void> =>
  withInstance(options, async context => {
    const { store } = context
    const { organization: slug, search } = options
    const organization_id = slug === undefined ? undefined : (await organizationNamed(context, slug)).id
    const keyset = keysetOf('created_at')
    await printList<UserWithRoles>({
      json: options.json,
      fetch: async (after, limit) => {
        const page = { sort: 'created_at', order: 'asc', after, limit } as const
        const users = await listUsers(store, { organization_id, search }, page)
        return store.read(q => roleNamesOf(q, users))
      },
      keyset,
      item: userAnswer,
      titles: ['USERNAME', 'EMAIL', 'ROLES', 'ENABLED', 'ID'],
      cells: user => [user.username, user.email, user.roles.join(' '), user.enabled ? 'yes' : 'no', user.id],
    })
  })
