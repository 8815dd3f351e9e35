import { z } from 'zod'
import { count, integer, line, oneOf, owner, set, stored, time } from '#src/directory/fields.ts'
import { writable as user } from '#src/directory/users/schema.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { locales } from '#src/http/locale.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import type { Invitation } from './store.ts'

/**
 * Default lifetime of an invitation in milliseconds. A week is enough for a person who is away for some days.
 * Anyone who reads the mailbox can take the account. A longer lifetime (at most 30 days) must therefore be
 * requested explicitly.
 */
export const INVITATION_TTL = 7 * DAY

const deliveries = ['mail', 'link'] as const

const groups = set(line(64, 1), 20).describe(
  'Ids of the groups that the person joins; to name a group, the caller needs `groups:update`.',
)

const shared = {
  email: 'bob@example.com',
  roles: ['user'],
  groups: [],
  max_uses: 1,
}

export const CreateInvitation = z
  .strictObject({
    delivery: oneOf(deliveries).describe(
      '`mail`: the server mails the link, and the use of the link verifies the address. `link`: the answer contains the link.',
    ),
    email: user.email.optional().describe('Address of the person; required with `mail`.'),
    roles: user.roles.default(['user']).describe('Names of the roles that the person gets.'),
    groups: groups.default([]),
    max_uses: integer(1, 1000)
      .default(1)
      .describe('Number of people who may accept. A link for several people gives only the role `user`.'),
    expires_in: integer((10 * MINUTE) / SECOND, (30 * DAY) / SECOND)
      .default(INVITATION_TTL / SECOND)
      .describe('Lifetime of the invitation in seconds.'),
    locale: oneOf(locales).optional().describe('Language of the mail; default: the language of the request.'),
    organization_id: owner,
  })
  .superRefine(({ delivery, email, roles, groups, max_uses }, issues) => {
    const refuse = (field: string, message: string) =>
      issues.addIssue({ code: 'custom', path: [field], message })
    if (delivery === 'mail' && email === undefined) refuse('email', 'An invitation by mail needs an address.')
    // A link for several people may reach a stranger, so it grants as little as possible.
    if (max_uses === 1) return
    if (email !== undefined) refuse('max_uses', 'An invitation to an address is for one person.')
    if (roles.join() !== 'user') refuse('roles', 'A link for several people gives only the role user.')
    if (groups.length > 0) refuse('groups', 'A link for several people cannot add them to groups.')
  })
  .meta({
    id: 'CreateInvitation',
    description: 'An invitation for a person who has no user yet.',
    example: { delivery: 'mail', email: shared.email, roles: ['editor', 'user'] },
  })
export type CreateInvitation = z.output<typeof CreateInvitation>

const { id, organization_id, created_at } = stored

const fields = {
  id,
  organization_id,
  status: oneOf(['pending', 'accepted', 'expired', 'withdrawn']).describe(
    '`accepted`: `max_uses` people have accepted.',
  ),
  delivery: oneOf(deliveries).describe(
    'How the link reaches the person: by `mail`, or as a `link` in the answer.',
  ),
  user_id: z
    .string()
    .nullable()
    .describe(
      'Id of the user who was invited, or who has accepted. Null until a person without a user accepts. Always null for an invitation for several people.',
    ),
  email: user.email
    .nullable()
    .describe('Address of the person; null for a link that was made without an address.'),
  roles: user.roles,
  groups,
  max_uses: integer(1, 1000).describe('Number of people who may accept.'),
  uses: count.describe('Number of people who have accepted.'),
  created_by: z
    .string()
    .nullable()
    .describe('Id of the user or client that made the invitation. Null if the server made it.'),
  created_at,
  expires_at: time.describe('Time from which the invitation no longer works (ISO 8601, UTC).'),
}

const shown = {
  id: example.invitation_id,
  organization_id: example.organization_id,
  status: 'pending',
  delivery: 'mail',
  user_id: null,
  ...shared,
  uses: 0,
  created_by: example.user_id,
  created_at: example.time,
  expires_at: example.later,
}

const InvitationAnswer = z.object(fields).meta({
  id: 'Invitation',
  description: 'An invitation for a person to become a user, or for a user to set a first credential.',
  example: shown,
})

const invitation_url = z
  .string()
  .optional()
  .describe('Link to give to the person. Only present if `delivery` is `link`, and only in this answer.')

export const SentInvitation = z.object({ ...fields, invitation_url }).meta({
  id: 'SentInvitation',
  description: 'An invitation. If `delivery` is `link`, the answer has the link.',
  example: {
    ...shown,
    delivery: 'link',
    invitation_url:
      'https://id.example.com/account/invitation?token=q3l5Xc0e9RrHkT7mZ1vYw8uJpN2sGfDaB6iOxE4hLCk',
  },
})

/** Maximum number of acceptances that an answer lists. A page of a list has the same maximum. */
export const MAX_ACCEPTED = 100

export const InvitationDetail = z
  .object({
    ...fields,
    accepted_by: z
      .array(z.object({ user_id: z.string(), accepted_at: time }))
      .describe(`Users who have accepted the invitation: the latest ${MAX_ACCEPTED}, newest first.`),
  })
  .meta({
    id: 'InvitationDetail',
    description: 'An invitation with the users who accepted it.',
    example: {
      ...shown,
      status: 'accepted',
      uses: 1,
      accepted_by: [{ user_id: example.user_id, accepted_at: example.time }],
    },
  })

const statusOf = ({ withdrawn_at, uses, max_uses, expires_at }: Invitation, now: number) => {
  if (withdrawn_at !== null) return 'withdrawn'
  if (uses >= max_uses) return 'accepted'
  return expires_at <= now ? 'expired' : 'pending'
}

/** Returns an invitation in the form of the admin API's answer. `now` (ms) decides the status. */
export const invitationAnswer = (row: Invitation, now: number): z.output<typeof InvitationAnswer> => ({
  id: row.id,
  organization_id: row.organization_id,
  status: statusOf(row, now),
  delivery: row.delivery,
  user_id: row.user_id,
  email: row.email,
  roles: row.roles,
  groups: row.groups,
  max_uses: row.max_uses,
  uses: row.uses,
  created_by: row.created_by?.id ?? null,
  created_at: iso(row.created_at),
  expires_at: iso(row.expires_at),
})

export const ListInvitations = listQuery({ organization_id: ofOrganization })
export type ListInvitations = z.output<typeof ListInvitations>

export const InvitationList = listOf('InvitationList', InvitationAnswer)
