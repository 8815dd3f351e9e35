import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { time } from '#src/directory/fields.ts'
import { getUserToChange } from '#src/directory/users/change.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { byCaller } from '#src/directory/users/service.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { listWaysIn } from '#src/directory/users/ways-in-store.ts'
import { chargeAdminMail } from '#src/http/admin-mail-limits.ts'
import { type AdminRoute, type RouteInput, route, writeAs } from '#src/http/guard.ts'
import { conflict } from '#src/lib/app-error.ts'
import { iso } from '#src/lib/text.ts'
import { enqueueNotice, LINK_LIFETIME } from '#src/mail/outbox.ts'
import type { Transaction } from '#src/storage/store.ts'
import { createSignInLink } from './links.ts'
import { mayReset } from './mail-delivery.ts'

/**
 * Mails that an administrator can send. `field` is the name of the mail in the event `user.updated`.
 * `obstacle` returns the reason why a user cannot get the mail.
 */
const requests = {
  reset_password: {
    field: 'password_reset_mail',
    obstacle: async (user: UserRow) =>
      mayReset(user) ? undefined : 'The user has no password, and the address is not verified.',
  },
  verify_email: {
    field: 'verification_mail',
    obstacle: async (user: UserRow, tx: Transaction) => {
      if (user.email_verified) return 'The address of the user is verified already.'
      const ways = await listWaysIn(tx, user)
      return ways.length > 0 ? undefined : 'The user has no way to sign in. Create a sign-in link.'
    },
  },
}

const sendMail = (
  context: Context,
  kind: keyof typeof requests,
  { caller, params, client_info }: RouteInput<{ user_id: string }>,
): Promise<void> =>
  writeAs(context, caller, async tx => {
    const by = byCaller(caller, client_info)
    const user = await getUserToChange(tx, by, params.user_id)
    const { field, obstacle } = requests[kind]
    if (!context.mail) throw conflict('This server sends no mail: set smtp_url and mail_from.')
    if (!user.enabled) throw conflict('The user is disabled.')
    const reason = await obstacle(user, tx)
    if (reason) throw conflict(reason)
    chargeAdminMail(context, tx, { ...user, name: kind })
    await recordUser(context, tx, by, 'user.updated', user, { fields: [field] })
    await enqueueNotice(context, tx, kind, user, client_info, { email: user.email })
  })

const NO_MAIL =
  'The server sends no mail, or the user cannot receive this mail; `error_description` has the reason.'

const SignInLink = z
  .object({
    url: z.string().describe('Link for the user. It works once.'),
    expires_at: time.describe('Time after which the link no longer works (ISO 8601, UTC).'),
  })
  .meta({
    id: 'SignInLink',
    description:
      'A link with which a user chooses a new password. A user without a second factor may choose a passkey instead.',
    example: {
      url: 'https://id.example.com/account/sign-in?token=q3l5Xc0e9RrHkT7mZ1vYw8uJpN2sGfDaB6iOxE4hLCk',
      expires_at: '2026-01-31T08:30:00.000Z',
    },
  })

/** Returns the routes by which administrators help users who are locked out. */
export const helpRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'sendPasswordReset',
    method: 'POST',
    path: '/users/:user_id/send-password-reset',
    permission: 'users:update',
    summary: 'Send a user a link to choose a new password (single use, 30 minutes)',
    status: 204,
    errors: [404, 409, 429],
    conflict: NO_MAIL,
    handle: input => sendMail(context, 'reset_password', input),
  }),
  route({
    id: 'sendVerification',
    method: 'POST',
    path: '/users/:user_id/send-verification',
    permission: 'users:update',
    summary: 'Mail a link that verifies the address of a signed-in user (single use, one day)',
    status: 204,
    errors: [404, 409, 429],
    conflict: NO_MAIL,
    handle: input => sendMail(context, 'verify_email', input),
  }),
  route({
    id: 'createSignInLink',
    method: 'POST',
    path: '/users/:user_id/sign-in-link',
    permission: 'users:update',
    fresh: true,
    summary:
      'Create a link with which a locked-out user chooses a new password or a passkey (single use, 30 minutes)',
    status: 201,
    answer: SignInLink,
    errors: [404, 409],
    conflict: 'The user is disabled.',
    handle: ({ caller, params, client_info }) =>
      writeAs(context, caller, async tx => {
        const by = byCaller(caller, client_info)
        const user = await getUserToChange(tx, by, params.user_id)
        const url = await createSignInLink(context, tx, user, by)
        return { url, expires_at: iso(context.clock.now() + LINK_LIFETIME) }
      }),
  }),
]
