import { findFlow, type StoredFlow, type Visitor, visitorOf } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { kindOf } from '#src/directory/identity-providers/buttons.ts'
import { findProvider } from '#src/directory/identity-providers/store.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash } from '#src/http/cookies.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { isPlain } from '#src/lib/text.ts'
import { PageError } from '#src/pages/boundary.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import type { CompleteProfile, LinkAccount } from '#src/pages/data.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { PASSWORD } from '#src/sign-in/log-in.ts'
import { provePassword } from '#src/sign-in/password.ts'
import { type Admission, type Arrival, admit } from './account-linking.ts'
import { enter, FEDERATED, linkAs, refusing } from './callback.ts'
import type { Profile } from './profile.ts'
import { findArrival } from './upstream-request.ts'

/** Somebody who has come back, and is asked for what is left. */
interface Asked {
  visitor: Visitor
  flow: StoredFlow
  arrival: Arrival
  handle: string
}

const ACTION = '/oauth/arrival'

const findAsked = async (context: Context, call: Call, handle: string): Promise<Asked> => {
  const visitor = visitorOf(context, call)
  const browser_hash = browserHash(context.config, call.request)
  const arrived = browser_hash && (await findArrival(context, handle, browser_hash))
  const provider = arrived && (await findProvider(context.store, arrived.provider_id))
  if (!arrived || !provider?.enabled) throw new PageError('expired', 400)
  const flow = await findFlow(context, visitor, arrived.handle)
  if (arrived.round !== flow.pending.round) throw new PageError('expired', 400)
  const { organization } = flow
  return {
    visitor,
    flow,
    arrival: { provider, organization, profile: arrived.profile, is_form: true },
    handle,
  }
}

const ask = (context: Context, { visitor, flow, arrival, handle }: Asked) => {
  const { provider } = arrival
  const { client, organization, pending } = flow
  return {
    common: {
      brand: brandOf(context, organization),
      request_id: visitor.call.request_id,
      action: ACTION,
      csrf_token: issueCsrf(context, 'arrival', pending.browser_hash, handle),
      provider: { name: provider.name, kind: kindOf(provider) },
      cancel_url: `/oauth/login?request=${flow.handle}`,
      ...(client && { client_name: client.name || client.client_id }),
    },
    locale: visitor.call.locale,
  }
}

type Again<Page> = Omit<RenderOptions, 'locale'> & { data?: Partial<Page> }

const linkPage = (
  context: Context,
  asked: Asked,
  { data, ...options }: Again<LinkAccount> = {},
): Response => {
  const { common, locale } = ask(context, asked)
  const { email = '' } = asked.arrival.profile
  return render('link-account', { ...common, email, ...data }, { locale, ...options })
}

const profilePage = (
  context: Context,
  asked: Asked,
  { data, ...options }: Again<CompleteProfile> = {},
): Response => {
  const { common, locale } = ask(context, asked)
  const { email } = asked.arrival.profile
  const missing = missingOf(asked.arrival.profile)
  return render(
    'complete-profile',
    { ...common, missing, ...(email && { email }), ...data },
    { locale, ...options },
  )
}

/** What is to be typed: an address, a name. */
const missingOf = ({ email, first_name, last_name }: Profile): CompleteProfile['missing'] => [
  ...(first_name || last_name ? [] : (['first_name', 'last_name'] as const)),
  ...(email ? [] : (['email'] as const)),
]

type Reply = (admission: Admission) => Promise<Response | undefined>

/** The answer to what `admit` says by now; what is no question any more is done at once. */
const settle = async (context: Context, asked: Asked, reply: Reply): Promise<Response> => {
  const { visitor, flow, arrival } = asked
  const { provider, linking } = arrival
  return refusing(context, visitor, { provider, flow, linking }, async () => {
    const admission = await context.store.read(q => admit(q, arrival))
    return (await reply(admission)) ?? enter(context, visitor, flow, arrival)
  })
}

/** https://…/oauth/arrival?arrival=<handle>: what is missing between a provider's word and a user of ours. */
export const getArrival =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const handle = new URL(call.request.url).searchParams.get('arrival')
    if (!handle) throw new PageError('method', 400)
    const asked = await findAsked(context, call, handle)
    return settle(context, asked, async ({ step }) => {
      if (step === 'prove') return linkPage(context, asked)
      return step === 'complete' ? profilePage(context, asked) : undefined
    })
  }

export const postArrival =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    checkOrigin(context.config, call.request)
    const form = parseForm(await readForm(call.request))
    const browser_hash = browserHash(context.config, call.request)
    const handle = verifyCsrf(context, 'arrival', browser_hash, form.get('csrf_token'))
    const asked = await findAsked(context, call, handle)
    return settle(context, asked, async admission => {
      if (admission.step === 'prove') return prove(context, asked, admission.user.username, form)
      return admission.step === 'complete' ? complete(context, asked, form) : undefined
    })
  }

/** The local password, once: from then on the provider's word is enough. */
const prove = async (
  context: Context,
  asked: Asked,
  identifier: string,
  form: ReadonlyMap<string, string>,
): Promise<Response> => {
  const { visitor, flow, arrival } = asked
  const password = form.get('password')
  if (!password) return linkPage(context, asked, { data: { error: { code: 'missing' } }, status: 400 })
  const { user, refusal } = await provePassword(context, {
    organization_id: arrival.organization.id,
    identifier,
    password,
    origin: visitor.call,
  })
  if (refusal) {
    const { status, headers, ...error } = refusal
    return linkPage(context, asked, { data: { error }, status, headers })
  }
  const factors = { ...FEDERATED, amr: [...PASSWORD.amr, ...FEDERATED.amr] }
  return linkAs(context, visitor, flow, arrival, user, factors)
}

/** What the person says of themselves; nobody has verified an address typed here. */
const complete = async (
  context: Context,
  asked: Asked,
  form: ReadonlyMap<string, string>,
): Promise<Response | undefined> => {
  const { visitor, flow, arrival } = asked
  const missing = missingOf(arrival.profile)
  const values = Object.fromEntries(missing.map(field => [field, (form.get(field) ?? '').trim()]))
  const errors = Object.fromEntries(
    missing.flatMap(field => {
      const error = errorOf(field, values[field] ?? '')
      return error ? [[field, error]] : []
    }),
  )
  if (Object.keys(errors).length > 0)
    return profilePage(context, asked, { data: { values, errors }, status: 422 })
  const email_verified = arrival.profile.email_verified && !missing.includes('email')
  return enter(context, visitor, flow, {
    ...arrival,
    profile: { ...arrival.profile, ...values, email_verified },
  })
}

const errorOf = (
  field: CompleteProfile['missing'][number],
  text: string,
): NonNullable<CompleteProfile['errors']>[typeof field] => {
  if (field === 'last_name' && !text) return undefined
  if (!text) return 'required'
  if (text.length > 255 || !isPlain(text)) return 'too_long'
  return field === 'email' && !canonicalEmail(text) ? 'email' : undefined
}
