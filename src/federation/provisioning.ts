import { anonymousActor } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { withRoles } from '#src/directory/identity-providers/store.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import { isReservedName, needsApproval, recordRegistration } from '#src/directory/registrations/service.ts'
import { createUser } from '#src/directory/users/service.ts'
import { rolesNamed, takenName, type UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { newSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { completeUser, findInvited, refuse, useUp } from '#src/sign-in/accept-invitation.ts'
import { linkAccount } from '#src/sign-in/external-accounts.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { accountOf, confirmProvider, newAddressOf, type UpstreamIdentity } from './account-linking.ts'
import type { UpstreamProfile } from './profile.ts'

/** Maximum number of roles of a new user, the same as the maximum in the admin API. */
const MAX_ROLES = 100

/**
 * Creates a user from the upstream profile (just-in-time provisioning) and links the account. The user has no
 * password and signs in through the provider. Later logins copy nothing from the profile, because a copy
 * could undo an administrator's change.
 *
 * An invitation is used up in the same write, and its roles and groups are given to the user. If the
 * invitation already has a user, the account is linked to that user instead.
 *
 * If the organization demands approval of registrations, a user without an invitation is disabled and waits
 * for approval. A provider that anyone can use must not bypass the approval.
 *
 * @throws AppError `conflict` when a concurrent request took the name or address or linked the account;
 * PageError 410 when the invitation has ended, and 400 `expired` when the organization's policy changed in
 * the meantime; the errors of `confirmProvider`
 */
export const provisionUser = async (
  context: Context,
  identity: UpstreamIdentity,
  call: Call,
): Promise<UserRow> => {
  const { provider, organization, profile, invited } = identity
  const { first_name = '', last_name = '' } = profile
  const email = newAddressOf(identity) ?? ''
  const found = invited && (await context.store.read(q => findInvited(context, q, invited.link_hash)))
  const waits = !found && needsApproval(organization)
  const also = async (tx: Transaction, user: UserRow) => {
    await confirmProvider(tx, identity)
    await linkAccount(context, tx, accountOf(identity), user, call)
    if (found) return useUp(context, tx, call, found, user)
    const now = await readOrganization(tx, organization.id)
    if (!now || needsApproval(now) !== waits) throw new PageError('expired', 400)
    if (waits) await recordRegistration(context, tx, user, call)
  }
  if (invited && found?.user) {
    await completeUser(context, call, { organization, ...invited }, undefined, also).catch(refuse)
    return found.user
  }
  const { username, roles } = await context.store.read(async q => {
    const [{ roles: defaults = [] } = {}] = await withRoles(q, [provider])
    // Names that are not roles of the organization are ignored. The provider's list may contain groups of the
    // provider, and a renamed or deleted role must not lock people out.
    const wanted = [...(found?.invitation.roles ?? []), ...profile.roles]
    const existing = new Set((await rolesNamed(q, organization.id, wanted)).map(({ name }) => name))
    const named = [...defaults.map(({ name }) => name), ...wanted.filter(name => existing.has(name))]
    return {
      username: await freeName(q, identity),
      roles: [...new Set(named)].slice(0, MAX_ROLES),
    }
  })
  return createUser(
    context,
    {
      username,
      email,
      first_name,
      last_name,
      password_hash: null,
      enabled: !waits,
      email_verified:
        found?.invitation.delivery === 'mail' ||
        (provider.trust_email && profile.email_verified && email === profile.email),
      organization_id: organization.id,
      roles,
      attributes: {},
    },
    { actor: anonymousActor, client_info: call },
    also,
  ).catch(refuse)
}

/** Derives a valid user name from the upstream user name or e-mail address. */
export const baseName = ({ username, email = '' }: Pick<UpstreamProfile, 'username' | 'email'>): string => {
  const wanted = username || email.split('@')[0] || ''
  const plain = wanted
    .split('@', 1)
    .join('')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '')
    .slice(0, 100)
  return plain.length >= 3 ? plain : `user${plain && `-${plain}`}`
}

/**
 * Number of names that are tried before random characters are added. For the base name `jane`, the last name
 * tried is `jane-9`. Each name takes one or two queries.
 */
const TRIES = 9

/**
 * Returns a free name: the base name, the base name with a number, or the base name with random characters. A
 * name that looks like a reserved name, or like the name of an administrator, counts as taken. Otherwise
 * anyone could choose such a name at a public provider, and applications would show it. An invited person may
 * have such a name.
 */
const freeName = async (
  q: Queries,
  { organization, profile, invited }: UpstreamIdentity,
): Promise<string> => {
  const base = baseName(profile)
  for (let number = 1; number <= TRIES; number++) {
    const username = number === 1 ? base : `${base}-${number}`
    const user = { id: 'usr_', organization_id: organization.id, username, email: '' } as const
    if ((await takenName(q, user)) === 'username') continue
    if (invited || !(await isReservedName(q, organization, username))) return username
  }
  return `${base}-${newSecret()
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 8)
    .toLowerCase()}`
}
