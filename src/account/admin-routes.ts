import { z } from 'zod'
import type { Context } from '#src/context.ts'
import { time } from '#src/directory/fields.ts'
import { byCaller, getUserToChange } from '#src/directory/users/service.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { conflict } from '#src/lib/app-error.ts'
import { iso } from '#src/lib/text.ts'
import { enqueueMail, enqueueNotice, LINK_LIFETIME } from '#src/mail/outbox.ts'
import { createSignInLink } from './links.ts'

const needsMail = ({ mail }: Context): void => {
  if (!mail) throw conflict('This server sends no mail: smtp_url and mail_from are not set.')
}

const SignInLink = z.object({ url: z.string(), expires_at: time })

/** What administrators do so that a user gets in again. */
export const helpRoutes = (context: Context): AdminRoute[] => [
  route({
    method: 'POST',
    path: '/users/:user_id/send-password-reset',
    permission: 'users:update',
    summary: 'Send a user a link to choose a new password (once, 30 minutes)',
    status: 204,
    errors: [404, 409],
    handle: ({ caller, params, origin }) =>
      context.store.write(async tx => {
        const user = await getUserToChange(tx, byCaller(caller, origin), params.user_id)
        needsMail(context)
        const { id: user_id, organization_id } = user
        await enqueueMail(context, tx, { kind: 'reset_password', organization_id, user_id }, origin)
      }),
  }),
  route({
    method: 'POST',
    path: '/users/:user_id/send-verification',
    permission: 'users:update',
    summary: 'Send a user a link to verify the e-mail address (once, a day)',
    status: 204,
    errors: [404, 409],
    handle: ({ caller, params, origin }) =>
      context.store.write(async tx => {
        const user = await getUserToChange(tx, byCaller(caller, origin), params.user_id)
        needsMail(context)
        const { email, email_verified } = user
        if (email_verified) throw conflict('The address of the user is verified already.')
        await enqueueNotice(context, tx, 'verify_email', user, origin, { email })
      }),
  }),
  route({
    method: 'POST',
    path: '/users/:user_id/sign-in-link',
    permission: 'users:update',
    summary: 'Make a link by which a user who is locked out chooses a new password (once, 30 minutes)',
    status: 201,
    answer: SignInLink,
    errors: [404],
    handle: ({ caller, params, origin }) =>
      context.store.write(async tx => {
        const by = byCaller(caller, origin)
        const user = await getUserToChange(tx, by, params.user_id)
        const url = await createSignInLink(context, tx, user, by)
        return { url, expires_at: iso(context.clock.now() + LINK_LIFETIME) }
      }),
  }),
]
