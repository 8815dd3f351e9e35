import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { findInvitationOfLink, type Invitation } from '#src/directory/invitations/store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Call } from '#src/http/call.ts'
import { mayReport } from '#src/http/refusal-log.ts'
import { HOUR } from '#src/lib/duration.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { type Found, findInvited } from '#src/sign-in/accept-invitation.ts'
import { countFailure, type Limit } from '#src/sign-in/throttle.ts'

/**
 * Returns the invitation with this `link_hash`. {@link recordRefusal} records the refusal of an existing
 * invitation.
 *
 * @throws PageError 410 when the invitation does not exist or is refused; 503 when the organization requires
 * a passkey, but browsers offer none at the URL of the server, which has changed since
 */
export const openInvitation = async (context: Context, call: Call, link_hash: SecretHash): Promise<Found> => {
  const found = await context.store
    .read(q => findInvited(context, q, link_hash))
    .catch(async error => {
      if (error instanceof PageError && error.status === 410) await recordRefusal(context, call, link_hash)
      throw error
    })
  // The invitation stays open. A provider would use it up, and the login after it would be refused.
  if (settingsOf(found.organization).passkey_required && !offersPasskeys(context.config))
    throw new PageError('no_passkeys', 503)
  return found
}

/**
 * Returns why an invitation was refused. `not_allowed` has several causes: the creator of the invitation lost
 * permissions, or the invited user was disabled or deleted, has signed in, or got a credential or another
 * address.
 */
const reasonOf = ({ uses, max_uses, expires_at }: Invitation, now: number) => {
  if (uses >= max_uses) return 'used_up'
  return expires_at <= now ? 'expired' : 'not_allowed'
}

const EVENTS = { kind: 'window', count: 1, window: HOUR, wait: 0 } satisfies Limit

/**
 * Records at most one event an hour for each invitation, because mail scanners open old links again and
 * again. The links of registrations are left out, because a stranger may ask for any number of them.
 */
const recordRefusal = async (context: Context, call: Call, link_hash: SecretHash): Promise<void> => {
  const invitation = await context.store.read(q => findInvitationOfLink(q, link_hash))
  if (!invitation || invitation.is_registration || !mayReport(context, call, invitation)) return
  const { id, organization_id } = invitation
  await context.store.write(async tx => {
    const [refusals = 0] = await countFailure(context, tx, [{ key: `invitation:${id}`, limit: EVENTS }])
    if (refusals > EVENTS.count) return
    await record(context, tx, {
      type: 'invitation.refused',
      actor: anonymousActor,
      target_id: id,
      target_type: 'invitation',
      organization_id,
      client_info: call,
      metadata: { reason: reasonOf(invitation, context.clock.now()) },
    })
  })
}
