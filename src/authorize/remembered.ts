import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Call } from '#src/http/call.ts'
import { rememberedHash } from '#src/http/cookies.ts'
import { DAY } from '#src/lib/duration.ts'
import { CONSOLE_CLIENT, type UserId } from '#src/lib/ids.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import { listRememberedIn } from '#src/sessions/remembered-store.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Flow } from './flow.ts'

/**
 * Returns the days for which this browser may be remembered in this flow. Returns undefined when the
 * organization remembers no browsers, and for requests that always need the second factor: those that ask for
 * a permission beyond `profile:*`, change the account, or come from the console.
 */
export const rememberDays = ({ request, client, organization }: Flow): number | undefined => {
  const isSensitive =
    request.confirm !== undefined ||
    request.enrol === true ||
    client?.client_id === CONSOLE_CLIENT ||
    isAdministrative(request.scopes)
  return isSensitive ? undefined : settingsOf(organization).remember_browser_days
}

/**
 * True for a first factor with which a browser may be remembered: a password or a provider. A code by mail or
 * a recovery code does not suffice, because the mailbox or a printed code would then be enough to sign in.
 */
export const isFirstFactor = ({ amr }: { readonly amr: readonly string[] }): boolean =>
  amr.includes('pwd') || amr.includes('fed')

/** Returns the users who need no second factor in this flow, because this browser is remembered for them. */
export const rememberedIn = (
  context: Context,
  q: Queries,
  { request }: Call,
  flow: Flow,
): Promise<ReadonlySet<UserId>> => {
  const days = rememberDays(flow)
  const hash = rememberedHash(context, request)
  if (days === undefined || hash === undefined) return Promise.resolve(new Set())
  const now = context.clock.now()
  // The organization may have reduced the number of days after it remembered this browser.
  const isKept = ({ created_at }: { created_at: number }) => created_at > now - days * DAY
  return listRememberedIn(q, hash, now).then(
    rows => new Set(rows.filter(isKept).map(({ user_id }) => user_id)),
  )
}
