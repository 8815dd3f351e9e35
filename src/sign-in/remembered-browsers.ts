import type { Context } from '#src/context.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { rememberedHash, setCookie } from '#src/http/cookies.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { iso } from '#src/lib/text.ts'
import { insertRemembered, moveRemembered } from '#src/sessions/remembered-store.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Remembers this browser for `days` days, after the user has proven the second factor. The cookie gets a new
 * value, so that an attacker cannot use a value that was planted or copied earlier. Returns the Set-Cookie
 * line.
 */
export const rememberBrowser = async (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'email' | 'organization_id'>,
  days: number,
  call: Call,
): Promise<string> => {
  const now = context.clock.now()
  const expires_at = now + days * DAY
  const value = newSecret()
  const browser_hash = hashSecret(value)
  const old = rememberedHash(context, call.request)
  if (old) await moveRemembered(tx, old, browser_hash)
  const id = newId('brw', now)
  await insertRemembered(tx, {
    id,
    user_id: user.id,
    organization_id: user.organization_id,
    browser_hash,
    ip_address: call.ip_address,
    user_agent: call.user_agent,
    created_at: now,
    expires_at,
  })
  const by = { actor: { id: user.id, email: user.email }, client_info: call }
  const metadata = { browser_id: id, expires_at: iso(expires_at) }
  await recordUser(context, tx, by, 'user.browser_remembered', user, metadata)
  return setCookie(context.config, context.cookies.remembered, value, (days * DAY) / SECOND)
}
