import type { Context } from '#src/context.ts'
import { DAY, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { Family } from '#src/lib/metrics.ts'
import { logoutTokenClaims } from '#src/protocol/oidc/logout-token.ts'
import { issueToken } from '#src/tokens/issue.ts'
import { claimLogout, type LogoutRow, listHeads, saveAttempt, type WaitingLogout } from './logout-store.ts'

/** Seconds: https://openid.net/specs/openid-connect-backchannel-1_0.html#LogoutToken advises two minutes. */
const TOKEN_LIFETIME = 120
/** Time that a sender has for one logout; afterwards any sender may try again. */
const LEASE = MINUTE
/** Time for which administrators see an outcome, beside the day that the sweep waits. */
const KEPT = 6 * DAY
const MAX_PAUSE = 10 * MINUTE
/** Deliveries at once, of the server and of one organization. */
const AT_ONCE = 20
const AT_ONCE_EACH = 4
/** Bytes of an application's answer, which is not read. */
const ANSWER = 16 * 1024

/** Returns the pause after failed attempts: 5 s, doubled each time, ± 20 % so that retries spread. */
const pauseAfter = (attempts: number): number =>
  Math.min(MAX_PAUSE, 5 * SECOND * 2 ** attempts) * (0.8 + 0.4 * Math.random())

/** Attempts by outcome: `delivered` or `failed`. */
export const LOGOUTS: Family = {
  name: 'gatehouse_logouts_total',
  help: 'Attempts to tell applications of a logout.',
  label: 'outcome',
}

interface Outcome {
  failure: string | null
  is_final: boolean
}

/** Signs a logout token and posts it: https://openid.net/specs/openid-connect-backchannel-1_0.html#BCRequest */
const post = async (context: Context, { logout, slug }: WaitingLogout): Promise<Outcome> => {
  const { token } = await issueToken(context, {
    alg: logout.alg ?? context.config.id_token_alg,
    typ: 'logout+jwt',
    lifetime: TOKEN_LIFETIME,
    claims: issued => logoutTokenClaims(issued, logout),
  })
  try {
    const { status, ok } = await context.fetch(logout.uri, {
      organization: { id: logout.organization_id, slug: slug ?? '' },
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
      bytes: ANSWER,
    })
    context.store.metrics.count(LOGOUTS, ok ? 'delivered' : 'failed')
    return ok
      ? { failure: null, is_final: true }
      : { failure: `The application answered ${status}.`, is_final: status === 400 }
  } catch (error) {
    context.store.metrics.count(LOGOUTS, 'failed')
    return { failure: (error as Error).message, is_final: false }
  }
}

/**
 * Attempts one logout. Status 400 ends it, because the application has judged it; every other failure is tried
 * again until the logout expires.
 */
const attempt = async (context: Context, waiting: WaitingLogout): Promise<void> => {
  const { number, client_id, organization_id, uri, attempts, expires_at } = waiting.logout
  const claimed = await context.store.write(tx =>
    claimLogout(tx, waiting.logout, context.clock.now() + LEASE),
  )
  if (!claimed) return
  const { failure, is_final } = await post(context, waiting)
  const now = context.clock.now()
  const next_attempt_at = Math.round(now + pauseAfter(attempts))
  const is_done = is_final || next_attempt_at >= expires_at
  await context.store.write(tx =>
    saveAttempt(tx, number, {
      failure,
      ...(is_done ? { done_at: now, expires_at: now + KEPT } : { next_attempt_at }),
    }),
  )
  if (failure === null) return
  const { origin } = new URL(uri)
  const details = { event: 'logout', client_id, organization_id, target: origin, attempts, failure }
  context.log.warn(details, is_done ? 'logout given up' : 'logout not delivered: trying again later')
}

const isStartable = (now: number, running: ReadonlyMap<string, LogoutRow>, { logout }: WaitingLogout) => {
  const ofOrganization = [...running.values()].filter(
    ({ organization_id }) => organization_id === logout.organization_id,
  )
  return (
    logout.next_attempt_at <= now &&
    running.size < AT_ONCE &&
    ofOrganization.length < AT_ONCE_EACH &&
    !running.has(logout.client_id)
  )
}

/**
 * Delivers the due logouts, one at a time for each client and some at once for each organization, until none is
 * left. `more` resolves when the outbox has changed.
 */
export const deliverLogouts = async (
  context: Context,
  more = () => new Promise<void>(() => {}),
): Promise<void> => {
  const running = new Map<string, LogoutRow>()
  const ends = new Map<string, Promise<void>>()
  for (;;) {
    const changed = more()
    const heads = await context.store.read(listHeads)
    for (const head of heads) {
      const { logout } = head
      if (!isStartable(context.clock.now(), running, head)) continue
      running.set(logout.client_id, logout)
      const end = attempt(context, head)
        .catch(error => context.log.error({ event: 'logout', err: error }, 'an attempt failed'))
        .finally(() => {
          running.delete(logout.client_id)
          ends.delete(logout.client_id)
        })
      ends.set(logout.client_id, end)
    }
    if (ends.size === 0) return
    await Promise.race([...ends.values(), changed])
  }
}

/**
 * Delivers new logouts at once and failed ones when they are due.
 *
 * @returns a function that stops the delivery
 */
export const startLogoutDelivery = (context: Context): (() => void) => {
  let signal = Promise.withResolvers<void>()
  let isRunning = false
  let isDue = false
  let isStopped = false
  const round = async (): Promise<void> => {
    isDue = true
    signal.resolve()
    signal = Promise.withResolvers()
    if (isRunning) return
    isRunning = true
    while (isDue && !isStopped) {
      isDue = false
      await deliverLogouts(context, () => signal.promise).catch(error =>
        context.log.error(
          { event: 'logout', err: error },
          'the outbox cannot be read and will be tried again',
        ),
      )
    }
    isRunning = false
  }
  // Not within the commit that ends the session, because its writer is waiting.
  context.store.onChange(topics => {
    if (!topics || topics.has('logouts')) setTimeout(round)
  })
  const timer = setInterval(round, 5 * SECOND)
  timer.unref()
  void round()
  return () => {
    isStopped = true
    clearInterval(timer)
  }
}
