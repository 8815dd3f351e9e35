import { z } from 'zod'
import { flag, line, oneOf, reference, set, time } from '#src/directory/fields.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { iso, isPlain } from '#src/lib/text.ts'
import { MAX_PASSWORD_BYTES, normalizePassword } from './password.ts'
import type { UserWithRoles } from './store.ts'

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
  .meta({ format: 'email' })

const Password = z
  .string('A password.')
  .refine(isPlain, 'Control characters are not allowed.')
  .refine(
    text => Buffer.byteLength(normalizePassword(text)) <= MAX_PASSWORD_BYTES,
    `At most ${MAX_PASSWORD_BYTES} bytes of UTF-8 are allowed.`,
  )

const RoleNames = set(line(128), 100).transform(names => names.sort())

const ATTRIBUTES_BYTES = 64 * 1024
const ATTRIBUTES_DEPTH = 16
/** A value takes two bytes at least, the comma included. */
const ATTRIBUTES_VALUES = ATTRIBUTES_BYTES / 2
const ATTRIBUTES_TOO_LARGE = 'At most 64 KiB as JSON.'

/**
 * Why a JSON value is no set of attributes; walked without recursion, since depth is what an attacker
 * chooses.
 */
const attributesProblem = (root: unknown): string | undefined => {
  if (typeof root !== 'object' || root === null || Array.isArray(root)) return 'A JSON object.'
  let level: object[] = [root]
  let values = 0
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > ATTRIBUTES_DEPTH) return `At most ${ATTRIBUTES_DEPTH} levels of nesting.`
    const next: object[] = []
    // The keys of an array one by one: a list of them would cost more than the rest.
    for (const node of level)
      for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
        const value: unknown = node[key as keyof typeof node]
        if (++values > ATTRIBUTES_VALUES) return ATTRIBUTES_TOO_LARGE
        if (key === '__proto__') return 'The name __proto__ is not allowed.'
        if ((typeof key === 'string' && !isPlain(key)) || (typeof value === 'string' && !isPlain(value)))
          return 'Control characters are not allowed, but for tabs and line feeds.'
        if (typeof value === 'object' && value !== null) next.push(value)
      }
    level = next
  }
  return Buffer.byteLength(JSON.stringify(root)) > ATTRIBUTES_BYTES ? ATTRIBUTES_TOO_LARGE : undefined
}

/** Free key-value pairs. Not `z.record`, which would copy them key by key and lose some. */
const Attributes = z
  .custom<Record<string, unknown>>()
  .superRefine((value, issues) => {
    const message = attributesProblem(value)
    if (message) issues.addIssue({ code: 'custom', message })
  })
  .meta({ type: 'object', additionalProperties: true })

/** Fields that a PUT may change. */
export const writable = {
  username: Username,
  email: Email,
  first_name: line(255),
  last_name: line(255),
  enabled: flag,
  email_verified: flag,
  roles: RoleNames,
  attributes: Attributes,
}

export const CreateUser = z.strictObject({
  ...writable,
  password: Password,
  enabled: writable.enabled.default(true),
  email_verified: writable.email_verified.default(false),
  organization_id: reference.optional(),
  roles: RoleNames.default(['user']),
  attributes: Attributes.default({}),
})
export type CreateUser = z.output<typeof CreateUser>

/** Read-only fields are let through here and compared with what is stored. */
export const UpdateUser = z.strictObject({
  ...z.object(writable).partial().shape,
  id: z.string().optional(),
  organization_id: z.string().optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
  last_login: z.string().nullable().optional(),
  password: z.never('A password is set through reset-password.').optional(),
})
export type UpdateUser = z.output<typeof UpdateUser>

export const ResetPassword = z.strictObject({ password: Password, temporary: flag.default(false) })
export type ResetPassword = z.output<typeof ResetPassword>

export const UserAnswer = z.object({
  id: z.string(),
  username: z.string(),
  email: z.string(),
  first_name: z.string(),
  last_name: z.string(),
  enabled: z.boolean(),
  email_verified: z.boolean(),
  organization_id: z.string(),
  roles: z.array(z.string()),
  attributes: z.record(z.string(), z.unknown()),
  created_at: time,
  updated_at: time,
  last_login: time.nullable(),
})
export type UserAnswer = z.output<typeof UserAnswer>

export const userAnswer = (user: UserWithRoles): UserAnswer => ({
  id: user.id,
  username: user.username,
  email: user.email,
  first_name: user.first_name,
  last_name: user.last_name,
  enabled: user.enabled,
  email_verified: user.email_verified,
  organization_id: user.organization_id,
  roles: user.roles,
  attributes: user.attributes,
  created_at: iso(user.created_at),
  updated_at: iso(user.updated_at),
  last_login: user.last_login === null ? null : iso(user.last_login),
})

const userSorts = ['created_at', 'username', 'email', 'last_login'] as const

const switched = z.stringbool({
  truthy: ['true'],
  falsy: ['false'],
  case: 'sensitive',
  error: 'true or false.',
})

export const ListUsers = listQuery({
  sort: oneOf(userSorts).default('created_at'),
  search: z.string().trim().pipe(line(256)).optional(),
  enabled: switched.optional(),
  organization_id: idFilter.optional(),
  role: line(128, 1).optional(),
  email_verified: switched.optional(),
})
export type ListUsers = z.output<typeof ListUsers>

export const UserList = listOf(UserAnswer)
