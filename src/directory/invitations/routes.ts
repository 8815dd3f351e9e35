import type { Caller, Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { scopeOf, within } from '#src/http/tenant.ts'
import { iso } from '#src/lib/text.ts'
import {
  CreateInvitation,
  InvitationDetail,
  InvitationList,
  invitationAnswer,
  ListInvitations,
  MAX_ACCEPTED,
  SentInvitation,
} from './schema.ts'
import {
  createInvitation,
  getInvitation,
  judgeNew,
  resendInvitation,
  type Sent,
  withdrawInvitation,
} from './service.ts'
import { countInvitations, listAccepted, listInvitations } from './store.ts'

const list = (context: Context, caller: Caller, query: ListInvitations) => {
  const organization_id = scopeOf(caller, query.organization_id)
  return answerPage(context, {
    name: 'invitations',
    query,
    scope: within(caller) ?? '',
    fetch: (after, limit) =>
      context.store.read(q => listInvitations(q, organization_id, { order: query.order, after, limit })),
    total: () => context.store.read(q => countInvitations(q, organization_id)),
    keyset: invitation => [invitation.created_at, invitation.id],
    item: invitation => invitationAnswer(invitation, context.clock.now()),
  })
}

/** Returns the admin routes of invitations. */
export const invitationRoutes = (context: Context): AdminRoute[] => {
  const sent = ({ invitation, url }: Sent) => ({
    ...invitationAnswer(invitation, context.clock.now()),
    ...(url && { invitation_url: url }),
  })
  return [
    route({
      id: 'createInvitation',
      method: 'POST',
      path: '/invitations',
      permission: 'users:create',
      summary: 'Invite a person by mail, or make a link',
      body: CreateInvitation,
      status: 201,
      answer: SentInvitation,
      errors: [409, 429],
      conflict: 'A user of the organization already has the address, or the server sends no mail.',
      review: (q, input, good) => judgeNew(q, good, input),
      handle: async input => sent(await createInvitation(context, input.body, input)),
    }),
    route({
      id: 'listInvitations',
      method: 'GET',
      path: '/invitations',
      permission: 'users:read',
      summary: 'List invitations',
      query: ListInvitations,
      status: 200,
      answer: InvitationList,
      handle: ({ caller, query }) => list(context, caller, query),
    }),
    route({
      id: 'getInvitation',
      method: 'GET',
      path: '/invitations/:invitation_id',
      permission: 'users:read',
      summary: 'Get an invitation with the users who accepted it',
      status: 200,
      answer: InvitationDetail,
      errors: [404],
      read: async (q, { caller, params }) => {
        const invitation = await getInvitation(q, caller, params.invitation_id)
        const accepted = await listAccepted(q, invitation.id, MAX_ACCEPTED)
        return {
          ...invitationAnswer(invitation, context.clock.now()),
          accepted_by: accepted.map(({ user_id, accepted_at }) => ({
            user_id,
            accepted_at: iso(accepted_at),
          })),
        }
      },
    }),
    route({
      id: 'resendInvitation',
      method: 'POST',
      path: '/invitations/:invitation_id/resend',
      permission: 'users:create',
      summary: 'Mail an invitation again with a new link, or return a new link; the old link stops working',
      status: 200,
      answer: SentInvitation,
      errors: [404, 409, 429],
      conflict:
        'The invitation was already accepted or withdrawn, the server sends no mail, or nobody can accept the invitation (for example because the address of its user has changed).',
      handle: async input => sent(await resendInvitation(context, input.params.invitation_id, input)),
    }),
    route({
      id: 'withdrawInvitation',
      method: 'DELETE',
      path: '/invitations/:invitation_id',
      permission: 'users:delete',
      summary: 'Withdraw an invitation; users who were created with it are kept',
      status: 204,
      errors: [404, 409],
      conflict: 'The invitation was already accepted or withdrawn.',
      handle: input => withdrawInvitation(context, input.params.invitation_id, input),
    }),
  ]
}
