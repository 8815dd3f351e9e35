import { permissionsOf } from '#src/directory/access.ts'
import { findAccount, listAccounts } from '#src/directory/identity-providers/account-store.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { type Organization, settingsOf } from '#src/directory/organizations/store.ts'
import { effectiveRoles } from '#src/directory/store.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import type { UserId } from '#src/lib/ids.ts'
import { exceeding } from '#src/lib/permission.ts'
import type { ExternalIdentity } from '#src/sign-in/external-accounts.ts'
import type { Queries } from '#src/storage/store.ts'
import type { UpstreamProfile } from './profile.ts'

/** Somebody who came back from a provider, as it vouches for them. */
export interface UpstreamIdentity {
  provider: IdentityProvider
  organization: Organization
  profile: UpstreamProfile
  /** The person on whose own page the account is to be linked. */
  linking?: UserId | undefined
  /** The person was asked for something in between: the form is good for one login. */
  is_form?: boolean
}

export type LinkingResult =
  /** Known by the provider's subject. */
  | { step: 'enter'; user: UserRow }
  /** An existing user whom the provider may name. */
  | { step: 'link'; user: UserRow }
  /** An existing user whom it may not: the person has to know the local password. */
  | { step: 'prove'; user: UserRow }
  /** Somebody new, of whom something is missing. */
  | { step: 'complete' }
  | { step: 'create' }
  | { step: 'refuse'; reason: string; user_id?: UserId }

/** Who it is, and what is left to do: the one rule for all providers. */
export const resolveAccount = async (q: Queries, identity: UpstreamIdentity): Promise<LinkingResult> => {
  const { provider, organization, profile, linking } = identity
  const account = await findAccount(q, { provider_id: provider.id, subject: profile.subject })
  const known_id = account?.user_id ?? linking
  if (account && linking && account.user_id !== linking) return { step: 'refuse', reason: 'linked_elsewhere' }
  if (known_id) {
    const user = await findUser(q, organization.id, known_id)
    if (!user?.enabled) return { step: 'refuse', reason: 'user_disabled', user_id: known_id }
    return { step: account ? 'enter' : 'link', user }
  }
  const user = profile.email ? await findUserForLogin(q, organization.id, profile.email) : undefined
  if (!user) return newUserOrQuestion(identity)
  if (!(await mayName(q, identity, user))) return { step: 'prove', user }
  return user.enabled ? { step: 'link', user } : { step: 'refuse', reason: 'user_disabled', user_id: user.id }
}

const newUserOrQuestion = ({ provider, organization, profile }: UpstreamIdentity): LinkingResult => {
  if (!provider.allow_registration) return { step: 'refuse', reason: 'registration_closed' }
  const reason = refusedAddress(organization, profile)
  if (reason) return { step: 'refuse', reason }
  const isWhole = profile.email && (profile.first_name || profile.last_name)
  return { step: isWhole ? 'create' : 'complete' }
}

/**
 * Where only some domains are allowed, the address is what lets a stranger in: it has to be one that the provider calls verified,
 * not one that somebody typed, there or here.
 */
const refusedAddress = (
  organization: Organization,
  { email = '', email_verified }: UpstreamProfile,
): string | undefined => {
  const { allowed_domains } = settingsOf(organization)
  if (allowed_domains.length === 0) return undefined
  if (email && !allowed_domains.includes(canonicalEmail(email)?.split('@')[1] ?? ''))
    return 'domain_not_allowed'
  return email && email_verified ? undefined : 'address_not_verified'
}

/**
 * Whether the provider's word alone makes somebody this user: its administrator trusts the addresses that it calls verified, and
 * the user has no more rights than the role `user`. Nor with an address that nobody verified, if somebody has logged in or
 * another provider brought the user: people change their address themselves, and whoever did may wait in that account for
 * the owner of the address.
 */
const mayName = async (
  q: Queries,
  { provider, profile }: UpstreamIdentity,
  user: UserRow,
): Promise<boolean> => {
  if (!provider.trust_email || !profile.email_verified) return false
  if (exceeding(new Set(), permissionsOf(await effectiveRoles(q, user.id))).length > 0) return false
  if (user.email_verified) return true
  return user.last_login === null && (await listAccounts(q, user.id)).length === 0
}

/** The account elsewhere that is to be linked. */
export const accountOf = ({
  provider,
  profile,
}: Pick<UpstreamIdentity, 'provider' | 'profile'>): ExternalIdentity => ({
  provider_id: provider.id,
  subject: profile.subject,
  label: profile.email ?? profile.username ?? '',
})
