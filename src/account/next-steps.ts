import type { Context } from '#src/context.ts'
import { listClients } from '#src/directory/clients/store.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import type { AccountPage } from '#src/pages/data.ts'
import { countAll } from '#src/storage/counts.ts'
import type { Viewer } from './viewer.ts'

/** The permission that each step needs. A user without this permission does not see the step. */
const needed = [
  ['client', 'clients:create'],
  ['user', 'users:create'],
  ['mail', 'settings:update'],
] as const

const linesFor = (option: string) => ({
  client: [`gatehouse client create NAME --kind web --redirect URL${option}`],
  user: [`gatehouse user create NAME --email ADDRESS${option}`],
  mail: ['GATEHOUSE_SMTP_URL=smtps://USER:PASSWORD@HOST', 'GATEHOUSE_MAIL_FROM=ADDRESS'],
})

/**
 * Returns the next steps of an administrator: connect a first application, add a second person, turn on mail.
 * A step disappears when it is done. A client that cannot sign users in does not count as an application.
 * Only administrators of the default organization can turn on mail. For them, the clients and users of all
 * organizations count. Returns undefined for users without steps.
 */
export const nextStepsOf = async (
  { config, store, mail }: Context,
  { organization: { id, slug }, permissions }: Viewer,
): Promise<AccountPage['next']> => {
  const own = needed.filter(([, permission]) => permissions.has(permission))
  if (own.length === 0) return undefined
  const isOperator = id === DEFAULT_ORGANIZATION
  const within = isOperator ? undefined : id
  const filter = { organization_id: within, type: undefined, grant_type: 'authorization_code' } as const
  const [applications, users] = await store.read(q =>
    Promise.all([
      listClients(q, filter, { order: 'asc', after: undefined, limit: 1 }),
      countAll(q, 'users', within),
    ]),
  )
  const due = { client: applications.length === 0, user: users < 2, mail: isOperator && !mail }
  const lines = linesFor(isOperator ? '' : ` --organization ${slug}`)
  const steps = own.flatMap(([step]) => (due[step] ? [{ step, lines: lines[step] }] : []))
  return steps.length > 0 ? { steps, issuer: config.url, is_operator: isOperator } : undefined
}
