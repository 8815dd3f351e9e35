import type { Context } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { findOrganization, type Organization } from '#src/directory/organizations/store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/charge.ts'
import { browserHash, cookieNames, loginHash, setCookie } from '#src/http/cookies.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { LoginId, OrganizationId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/boundary.ts'
import { type CsrfPurpose, checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { serves } from '#src/protocol/oauth/authorize-request.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { matches } from '#src/protocol/oauth/redirect-uri.ts'
import { isSubset } from '#src/protocol/oauth/scope.ts'
import { type FlowRequest, findPending, insertPending, type Pending } from './store.ts'

const PENDING_FOR = 30 * MINUTE

/** A login, or the first factor that was proven in the flow and whose login begins with the second. */
export type SubjectId = LoginId | 'proof'

/** One request of a browser, and the logins that it brings. */
export interface BrowserSession {
  readonly call: Call
  readonly login_hash: SecretHash | undefined
}

export const browserSessionOf = (context: Context, call: Call): BrowserSession => ({
  call,
  login_hash: loginHash(context.config, call.request),
})

/** An authorization on its way. */
export interface Flow {
  readonly request: FlowRequest
  /** Absent for a login that ends on /account. */
  readonly client: Client | undefined
  readonly organization: Organization
  /** Once a person has to act: what is stored of it. */
  readonly pending: Pending | undefined
  /** The person has just approved. */
  readonly approved: boolean
}

/** A flow that is stored, with the handle by which its browser knows it. */
export type StoredFlow = Flow & { readonly pending: Pending; readonly handle: string }

/** Everything about a request afresh: a client that may no longer ask for it gets no answer. */
export const flowOf = async (context: Context, request: FlowRequest): Promise<Flow> => {
  const isOwn = request.client_id === ''
  const client = isOwn ? undefined : await findClient(context.store, request.client_id)
  if (!isOwn && !(client && mayAsk(client, request))) throw new PageError('bad_client', 400)
  const organization = await findOrganization(context.store, request.organization_id as OrganizationId)
  if (!organization) throw new PageError('expired', 400)
  return { request, client, organization, pending: undefined, approved: false }
}

const mayAsk = (client: Client, { redirect_uri, scopes, organization_id }: FlowRequest): boolean =>
  client.redirect_uris.some(registered => matches(registered, redirect_uri)) &&
  client.grant_types.includes('authorization_code') &&
  isSubset(scopes, client.scopes) &&
  serves(client, organization_id)

/** The request of a login that no application asked for: it ends on /account, or where `own` says. */
export const accountRequest = (
  organization_id: OrganizationId,
  own: Partial<Pick<FlowRequest, 'back' | 'enrol' | 'max_age' | 'hinted_user_id'>> = {},
): FlowRequest => ({
  response_type: 'code',
  client_id: '',
  redirect_uri: '',
  state: undefined,
  code_challenge: '',
  scopes: [],
  organization_id,
  prompts: [],
  ui_locales: [],
  acr_values: [],
  nonce: undefined,
  login_hint: undefined,
  max_age: undefined,
  hinted_user_id: undefined,
  ...own,
})

/** How the handle of a login begins that no client asked for: it still says where to start again when nothing else does. */
const ownHandle = /^own-([a-z0-9-]+)-[\w-]{43}$/

const startOf = (handle: string): { retry_url?: string } => {
  const slug = ownHandle.exec(handle)?.[1]
  return slug === undefined ? {} : { retry_url: `/account?organization=${slug}` }
}

export const newHandle = (flow: Flow): string =>
  flow.client ? newSecret() : `own-${flow.organization.slug}-${newSecret()}`

/** Stores a flow for this browser, which gets its cookie now if it has none. */
export const storeFlow = async (
  context: Context,
  { call }: BrowserSession,
  flow: Flow,
  handle = newHandle(flow),
): Promise<{ stored: StoredFlow; cookies: string[] }> => {
  charge(context, { ip_address: call.ip_address, organization_id: flow.organization.id, kind: 'commit' })
  const known = browserHash(context.config, call.request)
  const fresh = newSecret()
  const now = context.clock.now()
  const pending: Pending = {
    request_hash: hashSecret(handle),
    browser_hash: known ?? hashSecret(fresh),
    client_id: flow.request.client_id,
    organization_id: flow.organization.id,
    request: flow.request,
    login_id: null,
    selected: false,
    proof: null,
    round: 0,
    enrolled: false,
    created_at: now,
    expires_at: now + PENDING_FOR,
  }
  await context.store.write(tx => insertPending(tx, pending))
  const cookies = known ? [] : [setCookie(context.config, cookieNames(context.config).browser, fresh)]
  return { stored: { ...flow, pending, handle }, cookies }
}

/** The stored flow that a handle names, if it was stored for this browser: 400 page `expired` for any other (O-29). */
export const findFlow = async (
  context: Context,
  { call }: BrowserSession,
  handle: string,
): Promise<StoredFlow> => {
  const browser_hash = browserHash(context.config, call.request)
  const pending =
    browser_hash &&
    (await context.store.read(q =>
      findPending(q, { request_hash: hashSecret(handle), browser_hash, now: context.clock.now() }),
    ))
  if (!pending) throw new PageError('expired', 400, startOf(handle))
  call.ui_locales = pending.request.ui_locales
  return { ...(await flowOf(context, pending.request)), pending, handle }
}

// A handle is base64url and an id of ours has no tilde.
const SEPARATOR = '~'

/** The `csrf_token` of a step's form: names the request, and the login that the page speaks of. */
export const stepToken = (
  context: Context,
  { pending, handle }: StoredFlow,
  purpose: CsrfPurpose,
  subject?: SubjectId,
): string =>
  issueCsrf(context, purpose, pending.browser_hash, subject ? `${handle}${SEPARATOR}${subject}` : handle)

interface PostedStep {
  browser: BrowserSession
  flow: StoredFlow
  form: ReadonlyMap<string, string>
  /** The subject of the page. */
  login_id: SubjectId | undefined
}

/**
 * The form of a step: from our own origin, with a token that this browser was given for this step (403 page), for a request
 * that is still pending (400 page). The token alone finds the request: the specification's consent form has no field for it.
 */
export const openStep = async (context: Context, call: Call, purpose: CsrfPurpose): Promise<PostedStep> => {
  checkOrigin(context.config, call.request)
  const form = parseForm(await readForm(call.request))
  const browser_hash = browserHash(context.config, call.request)
  const subject = verifyCsrf(context, purpose, browser_hash, form.get('csrf_token'))
  const [handle = '', login_id] = subject.split(SEPARATOR)
  if ((form.get('request') ?? handle) !== handle) throw new PageError('forbidden', 403)
  const browser = browserSessionOf(context, call)
  return {
    browser,
    flow: await findFlow(context, browser, handle),
    form,
    login_id: login_id as SubjectId | undefined,
  }
}

/** The flow as if it had settled on this login: what a page that spoke of it means. */
export const settleOn = (flow: StoredFlow, login_id: SubjectId | undefined): StoredFlow => {
  const { pending } = flow
  if (login_id === undefined || login_id === 'proof' || chosenOf(flow) === login_id) return flow
  return { ...flow, pending: { ...pending, login_id, selected: true, proof: null } }
}

/** The login that the flow has settled on, or the first factor proven in it whose login has not begun. */
export const chosenOf = ({ pending }: Flow): SubjectId | undefined =>
  pending?.proof ? 'proof' : (pending?.login_id ?? undefined)

/** Whether the login was proven in this flow, by its own record: two tabs may log in at the same moment. */
export const isProven = ({ pending }: Flow): boolean =>
  Boolean(pending?.proof ?? pending?.login_id) && !pending?.selected

/** What a challenge or a new secret of this flow is derived from: another one as soon as it was used. */
export const roundOf = ({ pending }: StoredFlow): string => `${pending.request_hash}\0${pending.round}`
