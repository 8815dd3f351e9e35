import type { FlowRequest } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import { findAccount } from '#src/directory/identity-providers/account-store.ts'
import { readProvider } from '#src/directory/identity-providers/store.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { isAllowedDomain } from '#src/directory/users/rules.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { isWaiting } from '#src/directory/users/waiting-store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { findInvited } from '#src/sign-in/accept-invitation.ts'
import { type ExternalIdentity, mayLinkByAddress } from '#src/sign-in/external-accounts.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { isWhole, type UpstreamProfile } from './profile.ts'
import { CallbackError } from './refusal.ts'

/** A user who returned from an identity provider, with the profile that the provider asserted. */
export interface UpstreamIdentity {
  provider: IdentityProvider
  organization: Organization
  profile: UpstreamProfile
  /** The user who links this account on the account page. */
  linking?: UserId | undefined
  /** The invitation that this login accepts. The invited user is new, or was created with the invitation. */
  invited?: FlowRequest['invited']
  /** True when the user filled in a form after the callback. The login then invalidates the form. */
  is_form?: boolean
}

/** The next step of a login through a provider. */
export type LinkingResult =
  /** The account is linked. Its user signs in. */
  | { step: 'enter'; user: UserRow }
  /** The account belongs to an existing user. The provider's assertion is enough to link the account. */
  | { step: 'link'; user: UserRow }
  /**
   * The account may belong to an existing user, who has to enter the local password before the account is
   * linked.
   */
  | { step: 'prove'; user: UserRow }
  /** The user is new. The profile is incomplete, so a form asks for the missing fields. */
  | { step: 'complete' }
  | { step: 'create' }
  /** The user of the account waits for an administrator's approval. */
  | { step: 'wait' }
  | { step: 'refuse'; reason: string; user_id?: UserId }

/** Decides which local user an upstream identity belongs to. The same rules apply to all providers. */
export const resolveAccount = async (
  context: Context,
  q: Queries,
  identity: UpstreamIdentity,
): Promise<LinkingResult> => {
  const { provider, organization, profile, linking, invited } = identity
  const account = await findAccount(q, { provider_id: provider.id, subject: profile.subject })
  const known_id = account?.user_id ?? linking
  if (account && linking && account.user_id !== linking) return { step: 'refuse', reason: 'linked_elsewhere' }
  if (known_id) {
    const user = await findUser(q, organization.id, known_id)
    if (!user?.enabled) return waitOrRefusal(q, known_id)
    return { step: account ? 'enter' : 'link', user }
  }
  const invitation = invited && (await findInvited(context, q, invited.link_hash))
  if (invitation?.user) return { step: 'create' }
  const user = profile.email ? await findUserForLogin(q, organization.id, profile.email) : undefined
  if (!user) return newUserOrQuestion(q, identity)
  if (!(await maySkipPassword(q, identity, user))) return { step: 'prove', user }
  return user.enabled ? { step: 'link', user } : waitOrRefusal(q, user.id)
}

/** Returns the next step of a disabled user, who may be waiting for approval. */
const waitOrRefusal = async (q: Queries, user_id: UserId): Promise<LinkingResult> =>
  (await isWaiting(q, user_id)) ? { step: 'wait' } : { step: 'refuse', reason: 'user_disabled', user_id }

const newUserOrQuestion = async (q: Queries, identity: UpstreamIdentity): Promise<LinkingResult> => {
  const { provider, organization, profile, invited } = identity
  if (!(provider.allow_registration || invited)) return { step: 'refuse', reason: 'registration_closed' }
  const email = newAddressOf(identity)
  const reason = refusedAddress(organization, { ...profile, email }, invited?.email != null)
  if (reason) return { step: 'refuse', reason }
  if (invited?.email && (await findUserForLogin(q, organization.id, invited.email)))
    return { step: 'refuse', reason: 'address_taken' }
  return { step: isWhole({ ...profile, email }) ? 'create' : 'complete' }
}

/**
 * Returns the address of a new user. The address of an invitation takes precedence over the provider's
 * address.
 */
export const newAddressOf = ({
  profile,
  invited,
}: Pick<UpstreamIdentity, 'profile' | 'invited'>): string | undefined => invited?.email ?? profile.email

/**
 * Returns the reason to refuse a new user's e-mail address. Returns undefined when the address is accepted.
 * If the organization allows only some domains, the provider must have verified the address, or an invitation
 * must name it. Otherwise anyone could type an address at an allowed domain and get a user.
 */
const refusedAddress = (
  organization: Organization,
  { email = '', email_verified }: UpstreamProfile,
  isInvited: boolean,
): string | undefined => {
  const { allowed_domains } = settingsOf(organization)
  if (allowed_domains.length === 0) return undefined
  if (email && !isAllowedDomain(allowed_domains, email)) return 'domain_not_allowed'
  return email && (email_verified || isInvited) ? undefined : 'address_not_verified'
}

/**
 * True when the provider's assertion alone may identify this user. The provider must have `trust_email` and
 * must have verified the address, and `mayLinkByAddress` must be true for the user.
 */
const maySkipPassword = async (
  q: Queries,
  { provider, profile }: UpstreamIdentity,
  user: UserRow,
): Promise<boolean> => provider.trust_email && profile.email_verified && (await mayLinkByAddress(q, user))

/**
 * Confirms inside the write that the provider has not changed since its answer was verified. A provider may
 * answer slowly, and an administrator may have changed, disabled or deleted the provider in the meantime.
 *
 * @throws CallbackError `provider_changed`
 */
export const confirmProvider = async (
  tx: Transaction,
  { provider }: Pick<UpstreamIdentity, 'provider'>,
): Promise<void> => {
  if (!Bun.deepEquals(await readProvider(tx, provider.id), provider))
    throw new CallbackError('provider_changed')
}

/** Returns the external account to link. */
export const accountOf = ({
  provider,
  profile,
}: Pick<UpstreamIdentity, 'provider' | 'profile'>): ExternalIdentity => ({
  provider_id: provider.id,
  subject: profile.subject,
  label: profile.email ?? profile.username ?? '',
})
