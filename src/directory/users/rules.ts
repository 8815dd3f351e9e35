import type { Caller } from '#src/context.ts'
import { mayGrant, permissionsOf, requireOrganization } from '#src/directory/access.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import { searchableNames } from '#src/directory/organizations/user-attributes.ts'
import { type Detail, notFound } from '#src/lib/app-error.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import type { OrganizationId, RoleId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { judgeAttributes } from './attributes.ts'
import { checkPolicy } from './password.ts'
import type { CreateUserBody } from './schema.ts'
import { rolesNamed } from './store.ts'

interface MaybeCaller {
  caller?: Caller | undefined
}

/**
 * Returns the ids of the roles with these names, and a detail for each unknown name.
 *
 * @throws AppError 403 when the roles grant permissions that the caller lacks
 */
export const rolesToGive = async (
  q: Queries,
  { caller }: MaybeCaller,
  organization_id: OrganizationId,
  names: string[],
) => {
  const roles = await rolesNamed(q, organization_id, names)
  if (caller) mayGrant(caller, permissionsOf(roles))
  const problems = names.flatMap(name =>
    roles.some(role => role.name === name)
      ? []
      : [{ field: 'roles', code: 'unknown_role', message: `The organization has no role ${name}.` }],
  )
  return { ids: roles.map(({ id }): RoleId => id), problems }
}

/** Returns the organization, or throws 404. */
export const organizationById = async (q: Queries, id: OrganizationId) => {
  const organization = await readOrganization(q, id)
  if (!organization) throw notFound('The organization')
  return organization
}

/** True when the organization allows the domain of the address. An empty list allows every domain. */
export const isAllowedDomain = (allowed_domains: string[], email: string): boolean =>
  allowed_domains.length === 0 ||
  allowed_domains.includes((canonicalEmail(email) ?? '').split('@').at(-1) ?? '')

/** Returns a detail when the organization does not allow the domain of the address. */
export const domainProblems = (allowed_domains: string[], email: string): Detail[] =>
  isAllowedDomain(allowed_domains, email)
    ? []
    : [
        {
          field: 'email',
          code: 'domain_not_allowed',
          message: `The organization allows only addresses at ${allowed_domains.join(', ')}.`,
        },
      ]

/**
 * Returns a detail for each rule of the organization that a new user breaks. Also returns the ids of the
 * user's roles and the names of the searchable attributes.
 *
 * @throws AppError 403 for roles with permissions that the caller lacks, 404 for an unknown organization
 */
export const judge = async (
  q: Queries,
  by: MaybeCaller,
  organization_id: OrganizationId,
  {
    roles: names = [],
    email,
    password,
    attributes: given = {},
  }: { roles?: string[]; email?: string; password?: string; attributes?: Record<string, unknown> },
) => {
  const settings = settingsOf(await organizationById(q, organization_id))
  const { ids, problems } = await rolesToGive(q, by, organization_id, names)
  const { user_attributes } = settings
  const judged = judgeAttributes(user_attributes, {}, given, by.caller !== undefined)
  return {
    role_ids: ids,
    indexed: searchableNames(user_attributes),
    problems: [
      ...problems,
      ...judged.problems,
      ...(email === undefined ? [] : domainProblems(settings.allowed_domains, email)),
      ...(password === undefined ? [] : checkPolicy(settings.password_policy, password)),
    ],
  }
}

/**
 * Calls {@link judge} with the organization that the body names. If the body names none, the caller's
 * organization is used. The body must have either a password or an invitation, because a user with neither
 * might have no way to sign in.
 *
 * @throws AppError 422 for an unknown organization, 403 for roles with permissions that the caller lacks
 */
export const judgeNew = async (
  q: Queries,
  caller: Caller,
  good: Partial<CreateUserBody>,
  bad: ReadonlySet<string> = new Set(),
) => {
  const { id } = await requireOrganization(q, caller, good.organization_id)
  const { password, ...rest } = good
  const judged = await judge(q, { caller }, id, { ...rest, ...(password !== undefined && { password }) })
  const isLacking = password === undefined && good.invite === undefined
  const problems = [
    ...judged.problems,
    ...(isLacking && !bad.has('password') && !bad.has('invite')
      ? [
          {
            field: 'password',
            code: 'required',
            message: 'A password or an invitation (`invite`) is required.',
          },
        ]
      : []),
    // An invited person chooses their own password.
    ...(password !== undefined && good.invite !== undefined
      ? [{ field: 'invite', code: 'not_allowed', message: 'Give invite or a password, not both.' }]
      : []),
  ]
  return { ...judged, problems }
}
