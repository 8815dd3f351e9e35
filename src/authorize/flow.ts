import type { Context } from '#src/context.ts'
import { type Api, findApi } from '#src/directory/apis/store.ts'
import type { DynamicClient } from '#src/directory/clients/dynamic-store.ts'
import { checkedName } from '#src/directory/clients/names.ts'
import { type Client, clientOfRequest } from '#src/directory/clients/store.ts'
import { letsIn } from '#src/directory/organizations/dynamic-clients.ts'
import { findOrganization, type Organization } from '#src/directory/organizations/store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, loginHash, setCookie } from '#src/http/cookies.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { type CsrfPurpose, checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { PageError } from '#src/pages/error-page.ts'
import { scopesWith, serves } from '#src/protocol/oauth/authorize-request.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { isRedirectOf } from '#src/protocol/oauth/redirect-uri.ts'
import { scopesAt } from '#src/protocol/oauth/resource.ts'
import { isSubset } from '#src/protocol/oauth/scope.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { type FlowRequest, findPending, insertPending, type Pending } from './store.ts'

/** Milliseconds in which a user has to finish a login: enough to wait for a mail or set up an app. */
export const PENDING_FOR = 30 * MINUTE

/**
 * Id of a login, or of the user whose first factor was proven in this flow. The login of this user begins
 * with the second factor.
 */
export type SubjectId = LoginId | UserId

/** True for the id of a login. */
export const isLoginId = (id: SubjectId | undefined): id is LoginId => id?.startsWith('login_') ?? false

/** A request of a browser, and the hash of its login cookie. */
export interface BrowserSession {
  readonly call: Call
  readonly login_hash: SecretHash | undefined
}

/** Returns the browser session that the login cookie of a call names. */
export const browserSessionOf = (context: Context, call: Call): BrowserSession => ({
  call,
  login_hash: loginHash(context, call.request),
})

/** An authorization in progress. */
export interface Flow {
  readonly request: FlowRequest
  /** The client. Undefined in a flow that no client asked for. Such a flow ends on /account or at `back`. */
  readonly client: Client | undefined
  readonly organization: Organization
  /** The APIs that the request names. */
  readonly apis: readonly Api[]
  /** The stored request. Undefined until the user has to act. */
  readonly pending: Pending | undefined
  /** The client as its metadata document describes it. Undefined until the document has been read. */
  readonly document?: DynamicClient
  /** True when the form in the current HTTP request approves the authorization. */
  readonly approved: boolean
}

/** A stored flow, with the handle that names it in URLs. */
export type StoredFlow = Flow & { readonly pending: Pending; readonly handle: string }

/**
 * Loads the client, the APIs and the organization of a request as they are now, so that changes made since
 * the request was stored take effect.
 *
 * @throws PageError 400: `unknown_client` or `bad_redirect` when client or redirect URI are no longer
 *   registered; `expired` when the client may no longer make this request or the organization was deleted
 */
export const flowOf = async (context: Context, request: FlowRequest): Promise<Flow> => {
  const isOwn = request.client_id === ''
  const client = isOwn ? undefined : await clientOfRequest(context, request.client_id, request.redirect_uri)
  if (!isOwn && !client) throw new PageError('unknown_client', 400)
  if (client && !isRedirectOf(client, request.redirect_uri)) throw new PageError('bad_redirect', 400)
  const apis = client ? await apisToAsk(context, client, request) : []
  if (!apis) throw new PageError('expired', 400)
  const organization = await findOrganization(context.store, request.organization_id as OrganizationId)
  if (!organization || (client && !letsIn(organization, client))) throw new PageError('expired', 400)
  return { request, client, organization, apis, pending: undefined, approved: false }
}

/**
 * Returns the APIs that a request names, as they are registered.
 *
 * @throws OAuthError `invalid_target` for an API that is unknown or that the client may not use
 */
export const apisOf = ({ store }: Context, client: Client, resources: readonly string[]): Promise<Api[]> =>
  Promise.all(
    resources.map(async resource => {
      const api = await findApi(store, resource)
      if (!api || !scopesAt(api, client)) throw new OAuthError('invalid_target')
      return api
    }),
  )

/** Returns the APIs of a request, or undefined when the client may no longer make the request. */
const apisToAsk = async (
  context: Context,
  client: Client,
  { scopes, organization_id, resources = [] }: FlowRequest,
): Promise<Api[] | undefined> => {
  const apis = await apisOf(context, client, resources).catch(error => {
    if (error instanceof OAuthError) return undefined
    throw error
  })
  const mayAsk =
    apis?.every(api => api.organization_id === organization_id) &&
    client.grant_types.includes('authorization_code') &&
    isSubset(scopes, scopesWith(client, apis)) &&
    serves(client, organization_id)
  return mayAsk ? apis : undefined
}

/** Returns the request of a flow without a client. The flow ends at `own.back`, by default on /account. */
export const accountRequest = (
  organization_id: OrganizationId,
  own: Partial<
    Pick<
      FlowRequest,
      'back' | 'confirm' | 'enrol' | 'invited' | 'max_age' | 'prompts' | 'hinted_user_id' | 'any_organization'
    >
  > = {},
): FlowRequest => ({
  response_type: 'code',
  client_id: '',
  redirect_uri: '',
  state: undefined,
  response_mode: undefined,
  code_challenge: '',
  scopes: [],
  organization_id,
  any_organization: false,
  prompts: [],
  ui_locales: [],
  acr_values: [],
  nonce: undefined,
  login_hint: undefined,
  max_age: undefined,
  hinted_user_id: undefined,
  ...own,
})

/**
 * Pattern of the handle of a flow without a client. The handle contains the slug of the organization that
 * the URL named, so that the page of an expired request can link to a new login.
 */
const ownHandle = /^own-(?:([a-z0-9-]+)-)?[\w-]{43}$/

const startOf = (handle: string): { retry_url?: string } => {
  const own = ownHandle.exec(handle)
  return own ? { retry_url: own[1] ? `/account?organization=${own[1]}` : '/account' } : {}
}

/** Generates the handle of a request. The handle of a flow without a client matches {@link ownHandle}. */
export const newHandle = ({ client, organization, request }: Flow): string => {
  if (client) return newSecret()
  return request.any_organization ? `own-${newSecret()}` : `own-${organization.slug}-${newSecret()}`
}

/**
 * Stores a flow for this browser. If the browser has no browser cookie, `cookies` contains the Set-Cookie
 * line for a new one.
 *
 * @throws AppError 429 when the budget of the network, the organization or the known browser is spent
 */
export const storeFlow = async (
  context: Context,
  { call }: BrowserSession,
  flow: Flow,
  handle = newHandle(flow),
): Promise<{ stored: StoredFlow; cookies: string[] }> => {
  await chargeBrowser(context, call, { organization_id: flow.organization.id, kind: 'commit' })
  const known = browserHash(context, call.request)
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
    recovered_by: null,
    created_at: now,
    expires_at: now + PENDING_FOR,
  }
  await context.store.write(tx => insertPending(tx, pending))
  const cookies = known ? [] : [setCookie(context.config, context.cookies.browser, fresh)]
  return { stored: { ...flow, pending, handle }, cookies }
}

/**
 * Returns the stored flow of a handle (O-29).
 *
 * @throws PageError 400 `expired` when the flow was not stored for this browser, or has expired
 * @throws the errors of {@link flowOf}
 */
export const findFlow = async (
  context: Context,
  { call }: BrowserSession,
  handle: string,
): Promise<StoredFlow> => {
  const browser_hash = browserHash(context, call.request)
  const pending =
    browser_hash &&
    (await context.store.read(q =>
      findPending(q, { request_hash: hashSecret(handle), browser_hash, now: context.clock.now() }),
    ))
  if (!pending) throw new PageError('expired', 400, startOf(handle))
  call.ui_locales = pending.request.ui_locales
  const flow = await flowOf(context, pending.request)
  call.application = flow.client && checkedName(flow.client, flow.request.redirect_uri)
  return { ...flow, pending, handle }
}

// Separates the handle, the id of a login or user, and a hash in a CSRF token. None contains a tilde.
const SEPARATOR = '~'

/**
 * Returns the `csrf_token` of a step's form. The token names the request, the login or user that the page
 * shows, and `content`, such as a hash of the scopes that a consent page shows.
 */
export const stepToken = (
  context: Context,
  { pending, handle }: StoredFlow,
  purpose: CsrfPurpose,
  subject?: SubjectId | '',
  content?: string,
): string => {
  const parts = [handle, subject, content].filter(part => part !== undefined)
  return issueCsrf(context, purpose, pending.browser_hash, parts.join(SEPARATOR))
}

interface PostedStep {
  browser: BrowserSession
  flow: StoredFlow
  form: ReadonlyMap<string, string>
  /** The login or user that the page showed. */
  login_id: SubjectId | undefined
  /** The `content` that the page gave to {@link stepToken}. */
  content: string | undefined
}

/**
 * Opens the form of a step. The CSRF token names the request. If the form has a field `request`, the field
 * must name the same request.
 *
 * @throws PageError 403 for a form from another origin, or without a token of this browser and step; 400 in
 * the cases of {@link findFlow}
 */
export const openStep = async (context: Context, call: Call, purpose: CsrfPurpose): Promise<PostedStep> => {
  checkOrigin(context.config, call.request)
  const form = parseForm(await readForm(call.request))
  const browser_hash = browserHash(context, call.request)
  const again = startOf(form.get('request') ?? '')
  const subject = verifyCsrf(context, purpose, browser_hash, form.get('csrf_token'), again)
  const [handle = '', login_id, content] = subject.split(SEPARATOR)
  if ((form.get('request') ?? handle) !== handle) throw new PageError('forbidden', 403)
  // Two forms post to paths that have no page. Their page is the URL of the login, which shows the due step.
  const path = purpose === 'login' || purpose === 'other_account' ? '/oauth/login' : call.path
  call.page = `${path}?request=${handle}`
  const browser = browserSessionOf(context, call)
  const flow = await findFlow(context, browser, handle)
  return { browser, flow, form, login_id: (login_id || undefined) as SubjectId | undefined, content }
}

/** Chooses the login that the page showed. Changes nothing if the page showed a user without a login. */
export const chooseLogin = (flow: StoredFlow, login_id: SubjectId | undefined): StoredFlow => {
  const { pending } = flow
  if (!isLoginId(login_id) || chosenOf(flow) === login_id) return flow
  return { ...flow, pending: { ...pending, login_id, selected: true, proof: null, recovered_by: null } }
}

/** Returns the id of the chosen login, or of the user while only the first factor is proven. */
export const chosenOf = ({ pending }: Flow): SubjectId | undefined =>
  pending?.proof?.user_id ?? pending?.login_id ?? undefined

/**
 * True when the user authenticated in this flow. The stored request decides this, because the logins of the
 * browser may come from another tab.
 */
export const isProven = ({ pending }: Flow): boolean =>
  Boolean(pending?.proof ?? pending?.login_id) && !pending?.selected

/**
 * Returns the text from which the challenges of this flow are derived. The text changes when a challenge or
 * another proof is used, so that an answer cannot be replayed.
 */
export const roundOf = ({ pending }: StoredFlow): string => `${pending.request_hash}\0${pending.round}`
