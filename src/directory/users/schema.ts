import { z } from 'zod'
import {
  flag,
  line,
  maintained,
  oneOf,
  owner,
  readOnlyStored,
  sameTime,
  set,
  stored,
  switched,
  time,
} from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { iso, isoOrNull, isPlain } from '#src/lib/text.ts'
import { FreeAttributes } from './free-attributes.ts'
import { MAX_PASSWORD_BYTES, normalizePassword } from './password.ts'
import type { UserWithRoles } from './store.ts'

/**
 * User names are ASCII, because look-alike letters would let one person pass as another. User names have no
 * `@`, so they cannot be mistaken for addresses.
 */
const Username = z
  .string('A user name of 3 to 128 characters.')
  .regex(/^[A-Za-z0-9._-]{3,128}$/, '3 to 128 letters (a-z), digits, dots, hyphens and underscores.')

const Email = z
  .string('An e-mail address.')
  .max(254, 'At most 254 characters.')
  .refine(
    text => canonicalEmail(text) !== undefined,
    'An e-mail address such as name@example.com, without quotes, comments or a dot at its end.',
  )
  // No `format`: `email` allows no international domain, and common validators do not know `idn-email`.
  .meta({ minLength: 3 })

const Password = z
  .string('A password.')
  .refine(isPlain, 'Control characters are not allowed.')
  .refine(
    text => Buffer.byteLength(normalizePassword(text)) <= MAX_PASSWORD_BYTES,
    `At most ${MAX_PASSWORD_BYTES} bytes of UTF-8 are allowed.`,
  )

const RoleNames = set(line(128), 100)
  .overwrite(names => names.sort())
  .describe(
    'Names of the roles that the user holds directly, sorted. Roles of groups apply too, but are not listed here.',
  )

/** Fields that a PUT may change. */
export const writable = {
  username: Username.describe('Unique in the organization, ignoring case.'),
  email: Email.describe('E-mail address, unique in the organization, ignoring case.'),
  first_name: line(255).describe('Given name.'),
  last_name: line(255).describe('Family name.'),
  enabled: flag.describe('Whether the user may sign in. Gatehouse refuses the tokens of a disabled user.'),
  email_verified: flag.describe('Whether the address is verified.'),
  email_code: flag.describe(
    'Whether the user may sign in with a code by mail. The organization must also offer the code (`settings.email_code`). `false` is accepted even if the user has no other way to sign in. Such a user needs a sign-in link.',
  ),
  roles: RoleNames,
  attributes: FreeAttributes.describe(
    `${FreeAttributes.description} Attributes that administrators cannot change keep their values.`,
  ),
}

const person = {
  username: 'alice',
  email: 'alice@example.com',
  first_name: 'Alice',
  last_name: 'Doe',
  roles: ['editor', 'user'],
  attributes: { department: 'Sales' },
}

export const CreateUser = z.strictObject({
  ...writable,
  password: Password.describe('Must meet the password policy of the organization.'),
  enabled: writable.enabled.default(true),
  email_verified: writable.email_verified.default(false),
  email_code: writable.email_code.default(true),
  organization_id: owner,
  roles: RoleNames.default(['user']),
  attributes: FreeAttributes.default({}),
})
export type CreateUser = z.output<typeof CreateUser>

/** The body of POST /users: a password, or an invitation to choose one. */
export const CreateUserBody = CreateUser.extend({
  password: CreateUser.shape.password.optional(),
  invite: oneOf(['mail', 'link'])
    .optional()
    .describe(
      'Instead of `password`: the user opens a link and chooses a password or passkey. `mail`: the server mails the link; `link`: the answer has the link.',
    ),
}).meta({
  id: 'CreateUser',
  description: 'A new user, with a password or an invitation.',
  example: { ...person, password: 'Correct-Horse-7', email_verified: true },
})
export type CreateUserBody = z.output<typeof CreateUserBody>

/**
 * The schema accepts read-only fields. The service refuses a value that differs from the stored value. A PUT
 * cannot set the password, because a new password also ends the user's sessions.
 */
export const UpdateUser = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyStored,
    last_login: maintained(sameTime.nullable()),
    picture: maintained(z.string()),
    password: z
      .never('Use reset-password to set a password.')
      .optional()
      .describe('Refused: `resetUserPassword` sets a password.'),
  })
  .meta({
    id: 'UpdateUser',
    description: 'The fields of a user to change.',
    example: { first_name: 'Alicia', attributes: { department: 'Support' } },
  })
export type UpdateUser = z.output<typeof UpdateUser>

export const ResetPassword = z
  .strictObject({
    password: Password.describe('Must meet the password policy of the organization.'),
    temporary: flag
      .default(false)
      .describe('Whether the user has to choose another password at the next login.'),
  })
  .meta({
    id: 'ResetPassword',
    description: 'A new password.',
    example: { password: 'Battery-Staple-8', temporary: true },
  })
export type ResetPassword = z.output<typeof ResetPassword>

export const UserAnswer = z
  .object({
    ...stored,
    ...writable,
    last_login: time.nullable().describe('Time of the last login; null before the first one.'),
    picture: z
      .string()
      .optional()
      .describe(
        'Path of the uploaded picture; absent when the user has none. Its URL is the claim `picture` of userinfo.',
      ),
  })
  .meta({
    id: 'User',
    description: 'A user of an organization.',
    example: {
      id: example.user_id,
      ...person,
      enabled: true,
      email_verified: true,
      email_code: true,
      organization_id: example.organization_id,
      created_at: example.time,
      updated_at: example.time,
      last_login: null,
    },
  })
export type UserAnswer = z.output<typeof UserAnswer>

export const CreatedUser = z
  .object({
    ...UserAnswer.shape,
    invitation_url: z
      .string()
      .optional()
      .describe('Link to give to the user, for `invite: link`; shown once.'),
  })
  .meta({
    id: 'CreatedUser',
    description: 'A new user of an organization.',
    example: UserAnswer.meta()?.example,
  })

/** Returns a user in the form of the admin API's answer. */
export const userAnswer = (user: UserWithRoles): UserAnswer => ({
  id: user.id,
  username: user.username,
  email: user.email,
  first_name: user.first_name,
  last_name: user.last_name,
  enabled: user.enabled,
  email_verified: user.email_verified,
  email_code: user.email_code,
  organization_id: user.organization_id,
  roles: user.roles,
  attributes: user.attributes,
  created_at: iso(user.created_at),
  updated_at: iso(user.updated_at),
  last_login: isoOrNull(user.last_login),
  ...(user.picture && { picture: user.picture }),
})

/** Maximum number of attribute filters. An organization can have the same number of searchable attributes. */
const MAX_FILTERS = 10
const userSorts = ['created_at', 'username', 'email', 'last_login'] as const

export const ListUsers = listQuery({
  sort: oneOf(userSorts).default('created_at').describe('Field to sort by; users without a value come last.'),
  search: z
    .string()
    .trim()
    .pipe(line(256))
    .meta({ maxLength: 256 })
    .optional()
    .describe(
      'Words to search for. Each word must be part of the user name, the e-mail address, the first name or the last name.',
    ),
  enabled: switched.optional().describe('Only enabled or only disabled users.'),
  organization_id: ofOrganization,
  role: line(128, 1)
    .optional()
    .describe(
      'Name of a role that the user holds directly. `GET /groups?role=` lists the groups that give a role to their members.',
    ),
  email_verified: switched.optional().describe('Only users with or without a verified address.'),
  attribute: z
    .record(
      z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'The name of an attribute.'),
      z.string('One value.').min(1, 'A value.').max(1024, 'At most 1,024 characters.'),
    )
    .refine(values => Object.keys(values).length <= MAX_FILTERS, `At most ${MAX_FILTERS} attributes.`)
    .optional()
    .describe(
      'Only users whose attribute has exactly this value, or is a list that contains this value. The parameter is `attribute.NAME=value` or `attribute[NAME]=value`, and NAME is a searchable attribute. Without `organization_id`, a caller of the default organization searches all organizations. If there are several organizations, an attribute that is searchable in none of them finds nobody and is not refused.',
    ),
})
export type ListUsers = z.output<typeof ListUsers>

export const UserList = listOf('UserList', UserAnswer)
