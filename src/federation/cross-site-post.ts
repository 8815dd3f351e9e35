import { consumeStoredPost, insertStoredPost } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/rate-limits.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { boundHandle } from './upstream-request.ts'

/**
 * Minimum charge for a POST to network and organization, in KiB. A network can thus send about as many POSTs
 * as it has other writes. The budgets that all networks share are charged with the size only, because they
 * limit stored bytes. With a minimum charge, small POSTs of a few networks would use these budgets up.
 */
const MIN_UNITS = 16

/**
 * Stores the body of a cross-site POST and redirects the browser to `GET ${path}/replay`. The browser sends
 * its SameSite=Lax cookie with this GET, but not with the POST. Without the cookie, the write cannot be
 * charged to a known browser. An answer to a pending upstream request is charged only here, because the start
 * of the request was already charged. The charge is at least `MIN_UNITS`, because such an answer can be
 * posted again and again.
 *
 * @param key the state of the upstream request, or the ids of the provider and of the unsolicited assertion.
 * A later POST with the same key replaces the stored body
 * @throws AppError 429 `rate_limited`
 */
export const storePost = async (
  context: Context,
  { path, ip_address }: Call,
  { organization_id }: IdentityProvider,
  body: string,
  key: string,
): Promise<Response> => {
  // A stored body takes space in the database, so it is charged by the KiB.
  const shared_units = Math.ceil(body.length / 1_024)
  const units = Math.max(MIN_UNITS, shared_units)
  charge(context, { ip_address, organization_id, kind: 'stored_answer', units, shared_units })
  const handle = boundHandle(context, 'replay', key)
  const now = context.clock.now()
  await context.store.write(tx =>
    insertStoredPost(tx, { handle_hash: hashSecret(handle), kind: path, body, now }),
  )
  return seeOther(`${path}/replay?handle=${handle}`)
}

/**
 * Returns and deletes the stored body of the POST that this call replays.
 *
 * @throws PageError 400 `expired` for an unknown, used or expired handle
 */
export const takeStoredPost = async (context: Context, { path, request }: Call): Promise<string> => {
  const handle_hash = hashSecret(new URL(request.url).searchParams.get('handle') ?? '')
  const kind = path.replace(/\/replay$/, '')
  const now = context.clock.now()
  const body = await context.store.write(tx => consumeStoredPost(tx, { handle_hash, kind, now }))
  if (body === undefined) throw new PageError('expired', 400)
  return body
}
