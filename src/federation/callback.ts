import { proceedAs } from '#src/authorize/authentication-result.ts'
import {
  accountRequest,
  findFlow,
  flowOf,
  type StoredFlow,
  storeFlow,
  type Visitor,
  visitorOf,
} from '#src/authorize/flow.ts'
import { consumePending, consumeRound } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, withCookies } from '#src/http/cookies.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { UserId } from '#src/lib/ids.ts'
import { PageError } from '#src/pages/boundary.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { linkOwnAccount } from '#src/sign-in/external-accounts.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type Arrival, accountOf, admit } from './account-linking.ts'
import { type Profile, tidy } from './profile.ts'
import { createNewcomer } from './provisioning.ts'
import { ArrivalError, checkArrivals, refuseArrival } from './refusal.ts'
import { endJourney, storeArrival } from './upstream-request.ts'

/** What was asked of the provider, on the journey that somebody comes back from. */
export interface Asked {
  /** Milliseconds. */
  readonly sent_at: number
  readonly reauthenticate: boolean
}

interface Answer {
  /** As it came back; undefined for somebody whom the provider sent of its own accord. */
  state: string | undefined
  /** Judges what the provider said. Whatever it throws, nobody is let in. */
  prove(asked: Asked | undefined): Promise<Profile>
}

/** Somebody comes back from a provider: in by way of `admit`, or refused with one page for every reason. */
export const receive = async (
  context: Context,
  call: Call,
  provider: IdentityProvider,
  { state, prove }: Answer,
): Promise<Response> => {
  await checkArrivals(context, call, provider)
  const visitor = visitorOf(context, call)
  const { flow, cookies, linking, asked } = await flowFor(context, visitor, provider, state)
  return refusing(context, visitor, { provider, flow, linking }, async () => {
    if (!provider.enabled) throw new ArrivalError('provider_disabled')
    const said = tidy(await prove(asked).catch(asArrivalError))
    const profile = { ...said, auth_time: authTimeOf(context, said, asked) }
    const answer = await enter(context, visitor, flow, {
      provider,
      organization: flow.organization,
      profile,
      linking,
    })
    return withCookies(answer, cookies)
  })
}

/**
 * The `auth_time` of the login, in milliseconds: the earlier of now and when the provider says that it was; 0, which no limit
 * takes for recent, when it does not say. A fresh proof that was asked for, and not refused for its age, is no older than the
 * request, and one whose time is not said is given now: some providers never say.
 */
const authTimeOf = ({ clock }: Context, { auth_time }: Profile, asked: Asked | undefined): number => {
  const now = clock.now()
  const time = asked?.reauthenticate ? Math.max(auth_time ?? now, asked.sent_at) : (auth_time ?? 0)
  return Math.min(now, Math.max(0, Math.floor(time)))
}

const asArrivalError = (cause: unknown): never => {
  throw cause instanceof ArrivalError || cause instanceof AppError
    ? cause
    : new ArrivalError('not_proven', { cause })
}

/** The authorization that the journey belongs to; a fresh one, to the person's own page, without a state. */
const flowFor = async (
  context: Context,
  visitor: Visitor,
  provider: IdentityProvider,
  state: string | undefined,
): Promise<{ flow: StoredFlow; cookies: string[]; linking?: UserId | undefined; asked?: Asked }> => {
  if (state === undefined) {
    const { stored, cookies } = await storeFlow(
      context,
      visitor,
      await flowOf(context, accountRequest(provider.organization_id)),
    )
    return { flow: stored, cookies }
  }
  const browser_hash = browserHash(context.config, visitor.call.request)
  const journey = browser_hash && (await endJourney(context, { state, browser_hash, provider }))
  if (!journey) throw await refuseArrival(context, visitor.call, provider, new ArrivalError('unknown_state'))
  const flow = await findFlow(context, visitor, journey.handle)
  const asked = { sent_at: journey.created_at, reauthenticate: journey.reauthenticate === true }
  return { flow, cookies: [], linking: journey.linking, asked }
}

/** Runs `body`; a refusal is recorded, and the page says where to start again. */
export const refusing = async (
  context: Context,
  { call }: Visitor,
  { provider, flow, linking }: { provider: IdentityProvider; flow: StoredFlow; linking: UserId | undefined },
  body: () => Promise<Response>,
): Promise<Response> => {
  try {
    return await body()
  } catch (error) {
    if (!(error instanceof ArrivalError)) throw error
    const retry_url = linking ? '/account' : `/oauth/login?request=${flow.handle}`
    throw await refuseArrival(context, call, provider, error, retry_url)
  }
}

/** How somebody came in: https://www.rfc-editor.org/rfc/rfc8176 has no word for it, `fed` is the common one. */
export const FEDERATED = { acr: '1', amr: ['fed'] }

/** Does what `admit` says. Somebody who was quicker (a second tab) makes it ask once more. */
export const enter = async (
  context: Context,
  visitor: Visitor,
  flow: StoredFlow,
  arrival: Arrival,
): Promise<Response> => {
  const admission = await context.store.read(q => admit(q, arrival))
  if (admission.step === 'refuse') {
    const { reason, user_id } = admission
    throw new ArrivalError(reason, { user_id, email: arrival.profile.email })
  }
  if (arrival.linking && 'user' in admission)
    return endLinking(context, visitor, flow, arrival, admission.user)
  const { auth_time, until } = arrival.profile
  const confirm = (tx: Transaction) => useForm(tx, flow, arrival)
  if (admission.step === 'enter')
    return proceedAs(context, visitor, flow, { ...admission, ...FEDERATED, auth_time, until, confirm })
  if (admission.step === 'link')
    return linkAs(context, visitor, flow, arrival, admission.user, { ...FEDERATED, auth_time })
  if (admission.step === 'create') {
    const user = await createNewcomer(context, arrival, visitor.call).catch(whenQuicker)
    return user
      ? proceedAs(context, visitor, flow, { user, ...FEDERATED, auth_time, until, confirm })
      : enter(context, visitor, flow, arrival)
  }
  const { provider, profile } = arrival
  const { browser_hash, round } = flow.pending
  const handle = await storeArrival(context, {
    browser_hash,
    provider_id: provider.id,
    handle: flow.handle,
    profile,
    round,
  })
  return seeOther(`/oauth/arrival?arrival=${handle}`)
}

/** Uses up the form that came in between, and every other of this flow: none of them logs in a second time. */
const useForm = async (tx: Transaction, { pending }: StoredFlow, { is_form }: Arrival): Promise<void> => {
  if (is_form && !(await consumeRound(tx, pending))) throw new PageError('expired', 400)
}

const whenQuicker = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'conflict') return undefined
  throw error
}

/** Links and logs in, in one write, once every factor that is owed was proven. */
export const linkAs = (
  context: Context,
  visitor: Visitor,
  flow: StoredFlow,
  arrival: Arrival,
  user: UserRow,
  means: typeof FEDERATED & { auth_time?: number | undefined },
): Promise<Response> =>
  proceedAs(context, visitor, flow, {
    user,
    ...means,
    until: arrival.profile.until,
    confirm: async tx => {
      await useForm(tx, flow, arrival)
      await confirmProof(tx, user)
    },
    deed: { do: 'link', account: accountOf(arrival) },
  })

/** A person on their own page gets another way in; nobody is logged in by it. */
const endLinking = async (
  context: Context,
  { call, login_hash }: Visitor,
  { pending }: StoredFlow,
  arrival: Arrival,
  user: UserRow,
): Promise<Response> => {
  const logins = login_hash ? await context.store.read(q => listLogins(context, q, login_hash)) : []
  if (!logins.some(({ user_id }) => user_id === user.id))
    throw new ArrivalError('not_logged_in', { user_id: user.id })
  const isLate = await context.store.write(async tx => {
    if (!(await consumePending(tx, pending.request_hash))) return true
    await linkOwnAccount(context, tx, accountOf(arrival), user, call)
    return false
  })
  if (isLate) throw new PageError('expired', 400)
  return seeOther('/account?notice=account_linked')
}
