import { consumeParked, insertParked } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/boundary.ts'
import { bound } from './upstream-request.ts'

const PARKED_FOR = 5 * MINUTE

/**
 * Keeps what another site posted to `path` and sends the browser to our own GET `${path}/parked`, where its Lax cookie comes
 * along (decisions.md section 3, "Cross-site POSTs"). What answers the journey of `state` is kept once, however often it is
 * posted: nobody fills the store by way of one journey.
 */
export const park = async (
  context: Context,
  { path }: Call,
  body: string,
  state?: string,
): Promise<Response> => {
  const handle = state === undefined ? newSecret() : bound(context, 'parked', state)
  const expires_at = context.clock.now() + PARKED_FOR
  await context.store.write(tx =>
    insertParked(tx, { handle_hash: hashSecret(handle), kind: path, body, expires_at }),
  )
  return seeOther(`${path}/parked?handle=${handle}`)
}

/** The body that was posted to the path above this one, once; 400 page `expired` for any other handle. */
export const unpark = async (context: Context, { path, request }: Call): Promise<string> => {
  const handle_hash = hashSecret(new URL(request.url).searchParams.get('handle') ?? '')
  const kind = path.replace(/\/parked$/, '')
  const now = context.clock.now()
  const body = await context.store.write(tx => consumeParked(tx, { handle_hash, kind, now }))
  if (body === undefined) throw new PageError('expired', 400)
  return body
}
