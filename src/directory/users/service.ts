import { hostActor, record } from '#src/audit/record.ts'
import type { Caller, Core } from '#src/context.ts'
import { requireOrganization, roleChange } from '#src/directory/access.ts'
import { adminKeeper } from '#src/directory/administrators.ts'
import { indexAttributes } from '#src/directory/organizations/attribute-store.ts'
import { chosenId } from '#src/directory/store.ts'
import { chargeAdminMail } from '#src/http/admin-mail-limits.ts'
import { writeAs } from '#src/http/guard.ts'
import { throwProblems, valueTaken } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DEFAULT_ORGANIZATION, newId, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { enqueueMail, enqueueNotice } from '#src/mail/outbox.ts'
import { releaseSessions } from '#src/sessions/service.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import {
  changedUser,
  getUser,
  getUserToChange,
  judgeChange,
  type UserChange,
  type UserChangedBy,
} from './change.ts'
import { removeEmailCode } from './email-code-store.ts'
import { costOf, rememberCost } from './hash-costs.ts'
import { hashPassword } from './password.ts'
import { recordUser } from './record.ts'
import { revokeAllSessions, revokePendingLinks } from './revocation.ts'
import { replaceUserRoles } from './role-store.ts'
import { judge } from './rules.ts'
import type { CreateUser } from './schema.ts'
import { insertUser, removeUsers, saveUser, takenName, type UserRow, type UserWithRoles } from './store.ts'
import { endWaiting } from './waiting-store.ts'

/** Returns the actor of a change through the admin API. */
export const byCaller = (caller: Caller, client_info: ClientInfo, confirmed?: string): UserChangedBy => ({
  actor: { id: caller.id, email: caller.email },
  client_info,
  caller,
  confirmed,
})

/**
 * The body of POST /users. Other parts of the server may also pass an `id` and `password_temporary`, and
 * `password_hash` in place of the password. For a user without a password, `password_hash` is null.
 */
export type NewUser = Omit<CreateUser, 'password' | 'email_code'> & {
  id?: UserId
  email_code?: boolean
  password_temporary?: boolean
} & ({ password: string } | { password_hash: string | null })

const refuseTaken = async (q: Queries, user: Parameters<typeof takenName>[1]): Promise<void> => {
  const name = await takenName(q, user)
  if (!name) return
  const field = name === 'username' ? name : 'email'
  throw valueTaken(field, `Another user of the organization already has this ${name}.`)
}

/**
 * Creates a user. `also` runs in the same write.
 *
 * @throws AppError 422 for a broken rule of the organization; 409 for a taken user name or address; the
 * errors of `requireOrganization`, `judge`, `chosenId`, `hashPassword` and `rememberCost`
 */
export const createUser = async (
  context: Core,
  input: NewUser,
  by: UserChangedBy,
  also?: (tx: Transaction, user: UserRow) => Promise<void>,
): Promise<UserWithRoles> => {
  const { username, email, first_name, last_name, enabled, email_verified, attributes } = input
  const id = input.id ?? newId('usr', context.clock.now())
  const check = async (q: Queries) => {
    const organization_id = by.caller
      ? (await requireOrganization(q, by.caller, input.organization_id)).id
      : ((input.organization_id ?? DEFAULT_ORGANIZATION) as OrganizationId)
    const { role_ids, indexed, problems } = await judge(q, by, organization_id, input)
    throwProblems(problems)
    await chosenId(q, 'user', input.id)
    await refuseTaken(q, { id, organization_id, username, email })
    return { organization_id, role_ids, indexed }
  }
  // `check` runs before the password is hashed, because a hash costs far more. The write repeats the check.
  const password_hash =
    'password' in input
      ? await hashPassword(context, input.password, {
          work: 'change',
          organization: (await context.store.read(check)).organization_id,
        })
      : input.password_hash
  return writeAs(context, by.caller, async tx => {
    const { organization_id, role_ids, indexed } = await check(tx)
    const now = context.clock.now()
    if (password_hash !== null) await rememberCost(context, tx, costOf(password_hash))
    await insertUser(
      tx,
      {
        id,
        organization_id,
        username,
        email,
        pending_email: null,
        picture: null,
        first_name,
        last_name,
        enabled,
        email_verified,
        email_code: input.email_code ?? true,
        attributes,
        password_hash,
        password_temporary: input.password_temporary ?? false,
        password_changed_at: now,
        created_at: now,
        updated_at: now,
        last_login: null,
      },
      role_ids,
    )
    const user = await getUser(tx, undefined, id)
    if (indexed.length > 0) await indexAttributes(tx, [user], indexed)
    await recordUser(context, tx, by, 'user.created', user, roleChange([], input.roles))
    await also?.(tx, user)
    return { ...user, roles: input.roles }
  })
}

/**
 * Changes the given fields. A change without effect records no event and keeps `updated_at`. `also` runs in
 * the same write, before the changed fields are stored.
 *
 * Disabling a user (`enabled: false`) revokes pending links and keeps the sessions. The sessions are refused
 * while the user is disabled, and work again when the user is enabled. A short suspension thus signs nobody
 * out. `revokeUserSessions` ends the sessions.
 *
 * @throws AppError 409 for `last_administrator` or a taken user name or address, 422 with the refused fields,
 * and the errors of `approve`, `notify` and `judgeChange`
 */
export const updateUser = (
  context: Core,
  id: string,
  given: UserChange,
  by: UserChangedBy,
  also?: (tx: Transaction, before: UserRow, changed: string[]) => Promise<void>,
): Promise<UserWithRoles> =>
  writeAs(context, by.caller, async tx => {
    const judged = await judgeChange(tx, id, given, by)
    const { user, before, change, changed, is_moved, roles, indexed, problems } = judged
    throwProblems(problems)
    await also?.(tx, user, changed)
    if (changed.length === 0) return before
    const row = changedUser(user, change, context.clock.now())
    const after = { ...row, roles: change.roles ?? before.roles }
    await refuseTaken(tx, after)
    const keepAdmin =
      roles || changed.includes('enabled')
        ? await adminKeeper(tx, by, user.organization_id, user.username)
        : undefined
    await saveUser(tx, row)
    // A new user name also updates the attribute index. A concurrent rebuild of the index reads the users in
    // the order of their names, and may already have passed the new name.
    if (indexed.length > 0 && (changed.includes('attributes') || changed.includes('username')))
      await indexAttributes(tx, [row], indexed)
    if (roles) await replaceUserRoles(tx, user.id, roles.ids)
    await keepAdmin?.()
    if (is_moved || changed.includes('enabled')) await revokePendingLinks(tx, user.id)
    if (changed.includes('email_code')) await removeEmailCode(tx, user.id)
    // Enabling a user who waits for approval approves the user. If the user is disabled later, they must not
    // appear among the waiting users again.
    if (changed.includes('enabled') && (await endWaiting(tx, user.id))) await approve(context, tx, row, by)
    if (is_moved) {
      const { email } = row
      await notify(context, tx, 'email_changed', row, by, { email, to: user.email })
    }
    const fields = changed.filter(name => name !== 'enabled')
    if (fields.length > 0)
      await recordUser(context, tx, by, 'user.updated', row, {
        fields,
        ...roleChange(before.roles, after.roles),
      })
    if (changed.includes('enabled'))
      await recordUser(context, tx, by, row.enabled ? 'user.enabled' : 'user.disabled', row)
    return after
  })

/**
 * Records the approval of a user who waited for it, and notifies the user by mail if the server sends mail.
 *
 * @throws AppError 429 when the mail exceeds the limits on mail that administrators send
 */
const approve = async (context: Core, tx: Transaction, user: UserRow, by: UserChangedBy): Promise<void> => {
  await recordUser(context, tx, by, 'user.approved', user)
  if (!context.mail) return
  if (by.caller) chargeAdminMail(context, tx, { ...user, name: `approved:${user.id}` })
  const { id: user_id, organization_id } = user
  const mail = { kind: 'registration_approved', user_id, organization_id } as const
  await enqueueMail(context, tx, mail, by.client_info)
}

/**
 * Sends the user a notice of a change, so that the user learns of a change that another person made. If an
 * administrator made the change, the mail counts against the limits on mail that administrators send.
 *
 * @throws AppError 429 when the mail would exceed these limits
 */
export const notify = (
  context: Core,
  tx: Transaction,
  kind: 'email_changed' | 'password_changed',
  user: UserRow,
  { caller, client_info }: UserChangedBy,
  data: { email?: string; to?: string } = {},
): Promise<void> => {
  if (caller && context.mail)
    chargeAdminMail(context, tx, { ...user, email: data.to ?? user.email, name: `${kind}:${user.id}` })
  return enqueueNotice(context, tx, kind, user, caller ? { locale: client_info.locale } : client_info, data)
}

/**
 * Deletes a user, the user's role assignments and memberships, and one batch of the user's other data. The
 * purge (`operations/purge`) deletes the remaining data in later batches.
 *
 * @throws AppError 409 `last_administrator`, and the errors of `getUserToChange`
 */
export const deleteUser = (context: Core, id: string, by: UserChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const user = await getUserToChange(tx, by, id)
    const keepAdmin = await adminKeeper(tx, by, user.organization_id, user.username)
    await removeUsers(tx, [user.id])
    await keepAdmin()
    const ended = await releaseSessions(context, tx, { user_id: user.id }, DELETE_BATCH)
    // When users delete themselves, the event keeps only their id: their e-mail address, IP address and user
    // agent must not stay in the log.
    const { actor, client_info } =
      by.actor.id === user.id ? { ...hostActor, actor: { id: user.id, email: null } } : by
    // The event is recorded before the events of the user are removed, so that the newest event is never
    // removed. SQLite would give the number of a removed newest event to the next event, which a webhook
    // could then skip.
    await record(context, tx, {
      type: 'user.deleted',
      actor,
      target_id: user.id,
      target_type: 'user',
      organization_id: user.organization_id,
      client_info,
    })
    const removed = await removeRemains(tx, 'user', [user.id], DELETE_BATCH)
    if (ended.length === DELETE_BATCH || removed === DELETE_BATCH)
      await beginPurge(tx, 'user', user.id, context.clock.now())
  })

/**
 * Revokes the user's sessions, logins and pending links, and returns the number of sessions.
 *
 * @throws AppError 404 when the user is unknown or of another organization
 */
export const revokeUserSessions = async (context: Core, id: string, by: UserChangedBy): Promise<number> => {
  const user = await context.store.read(q => getUser(q, by.caller, id))
  return revokeAllSessions(context, { user_id: user.id }, { ...by, caller: by.caller, reason: 'admin' })
}
