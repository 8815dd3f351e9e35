import type { Context, Core } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import type { UserChangedBy } from '#src/directory/users/change.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { domainProblems } from '#src/directory/users/rules.ts'
import { updateUser } from '#src/directory/users/service.ts'
import type { UserRow, UserWithRoles } from '#src/directory/users/store.ts'
import { insertWaiting, isWaiting } from '#src/directory/users/waiting-store.ts'
import { notFound } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { looksTaken } from './names.ts'
import { administratorNames } from './store.ts'

type Policies = Pick<Organization, 'settings'>

/**
 * True when people may register themselves in the organization. Registration needs a mail server, because the
 * link is mailed.
 */
export const allowsRegistration = ({ mail }: Pick<Context, 'mail'>, organization: Policies): boolean =>
  mail !== undefined && settingsOf(organization).registration !== 'off'

/** True when a person with this address may register. */
export const mayRegister = (
  context: Pick<Context, 'mail'>,
  organization: Policies,
  email: string,
): boolean => {
  const { allowed_domains, registration } = settingsOf(organization)
  return (
    allowsRegistration(context, organization) &&
    (registration !== 'domains' || allowed_domains.length > 0) &&
    domainProblems(allowed_domains, email).length === 0
  )
}

/** True when users who register wait for an administrator's approval. */
export const needsApproval = (organization: Policies): boolean =>
  settingsOf(organization).registration === 'approval'

/**
 * Maximum number of administrators whose names are compared with a new name. The number is limited because
 * strangers cause these comparisons.
 */
const COMPARED = 100

/** True when the name looks like a reserved name, the organization's slug or an administrator's name. */
export const isReservedName = async (
  q: Queries,
  { id, slug }: Pick<Organization, 'id' | 'slug'>,
  name: string,
): Promise<boolean> => looksTaken(name, [slug, ...(await administratorNames(q, id, COMPARED))])

/** Records a registration in the write that creates its user. A disabled user waits for approval. */
export const recordRegistration = async (
  context: Core,
  tx: Transaction,
  user: UserRow,
  client_info: ClientInfo,
): Promise<void> => {
  const { id: user_id, organization_id, email, enabled, created_at } = user
  if (!enabled) await insertWaiting(tx, { user_id, organization_id, created_at })
  const actor = { id: user_id, email }
  await recordUser(context, tx, { actor, client_info }, 'user.registered', user, { waits: !enabled })
}

/**
 * Approves a user who waits for approval, by enabling the user.
 *
 * @throws AppError 404 when the user does not wait; the errors of `updateUser`
 */
export const approveRegistration = (context: Core, id: string, by: UserChangedBy): Promise<UserWithRoles> =>
  updateUser(context, id, { enabled: true }, by, async (tx, user, changed) => {
    if (!(changed.includes('enabled') && (await isWaiting(tx, user.id)))) throw notFound('The registration')
  })
