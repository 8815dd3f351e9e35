import type { ClaimNames, UserField } from '#src/directory/identity-providers/presets.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { isLine, isPlain } from '#src/lib/text.ts'
import { type AssertedProfile, isSubject } from '#src/protocol/profile.ts'
import { CallbackError } from './refusal.ts'

/** A profile, and what the provider states about the login. Times are in milliseconds. */
export interface UpstreamProfile extends AssertedProfile {
  /** Time of the last authentication at the provider; undefined when it is not stated. */
  readonly auth_time?: number | undefined
  /** Time by which the session must end; undefined when the provider does not state it. */
  readonly until?: number | undefined
}

/**
 * Maximum number of names of a provider that are compared with the roles of the organization. A provider may
 * send thousands of groups.
 */
const MAX_NAMES = 1_000

/** True when the profile suffices for a new user: it has an address and a name. */
export const isWhole = ({ email, first_name, last_name }: UpstreamProfile): boolean =>
  Boolean(email && (first_name || last_name))

/**
 * Returns the text without surrounding spaces. Returns undefined when the result is empty, has more than
 * `max` characters or is not one storable line.
 */
const line = (text: string | undefined, max: number): string | undefined => {
  const trimmed = text?.trim()
  return trimmed && trimmed.length <= max && isLine(trimmed) ? trimmed : undefined
}

/**
 * Returns the profile without the values that cannot be stored. The fields of these values are undefined.
 *
 * @throws CallbackError `subject_missing` when the subject is empty, too long or not storable
 */
export const normalizeProfile = (profile: UpstreamProfile): UpstreamProfile => {
  const { subject } = profile
  if (!isSubject(subject) || !isPlain(subject)) throw new CallbackError('subject_missing')
  const email = line(profile.email, 254)
  return {
    subject,
    email: email && canonicalEmail(email) ? email : undefined,
    email_verified: profile.email_verified,
    username: line(profile.username, 255),
    first_name: line(profile.first_name, 255),
    last_name: line(profile.last_name, 255),
    auth_time: profile.auth_time,
    until: profile.until,
    roles: profile.roles.slice(0, MAX_NAMES).filter(name => line(name, 128) === name),
  }
}

const textOf = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return textOf(value[0])
  return typeof value === 'string' || Number.isSafeInteger(value) ? String(value) : undefined
}

const standard = {
  subject: ['sub'],
  username: ['preferred_username', 'nickname'],
  email: ['email'],
  email_verified: ['email_verified'],
  first_name: ['given_name'],
  last_name: ['family_name'],
  name: ['name'],
  roles: [],
} satisfies Required<ClaimNames>

/**
 * Maps claims to a profile. The provider's mapping names the claim of a field. For a field without a mapping,
 * the preset names the claim. For any other field, the claim has the standard name
 * (https://openid.net/specs/openid-connect-core-1_0.html#StandardClaims). The first word of the claim `name`
 * replaces a missing first name, and the other words replace a missing last name.
 */
export const mapClaims = (
  { attribute_mapping }: Pick<IdentityProvider, 'attribute_mapping'>,
  claims: Readonly<Record<string, unknown>>,
  preset: ClaimNames = {},
): UpstreamProfile => {
  const value = (field: UserField | 'name'): unknown => {
    const mapped = attribute_mapping[field]
    const names = mapped === undefined ? (preset[field] ?? standard[field]) : [mapped]
    return names.map(name => (Object.hasOwn(claims, name) ? claims[name] : undefined)).find(Boolean)
  }
  const [first, ...others] = (textOf(value('name')) ?? '').trim().split(/\s+/)
  const roles = value('roles')
  const email = textOf(value('email'))
  // The claim `email_verified` is about the claim `email` only. At some providers, users choose the values of
  // other claims that contain an address. Such an address counts as verified only if the provider's mapping
  // names a claim for `email_verified`, or if the claim `email` has the same address.
  const isAboutEmail = attribute_mapping.email_verified !== undefined || email === textOf(claims.email)
  return {
    subject: textOf(value('subject')) ?? '',
    email,
    // Some providers send `email_verified` as a string:
    // https://developer.apple.com/documentation/signinwithapple/authenticating-users-with-sign-in-with-apple
    email_verified: isAboutEmail && [true, 'true'].includes(value('email_verified') as boolean | string),
    username: textOf(value('username')),
    first_name: textOf(value('first_name')) ?? first,
    last_name: textOf(value('last_name')) ?? others.join(' '),
    roles: (Array.isArray(roles) ? roles : [roles]).filter(name => typeof name === 'string'),
  }
}
