import { PENDING_FOR } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import type { IdentityProviderId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'
import type { UpstreamProfile } from './profile.ts'
import {
  consumeUpstreamRequest,
  findUpstreamRequest,
  insertUpstreamRequest,
  type UpstreamRequestRow,
} from './store.ts'

/**
 * Content of an upstream request. The content is sealed, because the handle is a secret of the browser and
 * the profile is personal data.
 */
interface SealedState {
  /** Handle of the pending request. */
  handle: string
  /** The user who links the account on the account page. */
  linking?: UserId | undefined
  /** True when the provider was asked for a new authentication. */
  reauthenticate?: boolean
  /** The asserted profile; present in step `answered`. */
  profile?: UpstreamProfile
  /**
   * The pending request's `round` when the callback arrived. A form that is sent later is refused if the
   * round has changed. Present in step `answered`.
   */
  round?: number
  /** The provider's `updated_at` when the callback was verified. Present in step `answered`. */
  provider_version?: number
}

/** A started login at a provider, bound to one browser. */
export interface UpstreamRequest extends SealedState {
  provider_id: IdentityProviderId
}

const labelOf = ({ state_hash }: Pick<UpstreamRequestRow, 'state_hash'>): string => `upstream:${state_hash}`

type Stored = UpstreamRequest & Pick<UpstreamRequestRow, 'created_at'>

const open = ({ master }: Context, row: UpstreamRequestRow): Stored => ({
  ...(JSON.parse(master.open(row.sealed, labelOf(row)).toString()) as SealedState),
  provider_id: row.provider_id,
  created_at: row.created_at,
})

/**
 * Returns the state of an upstream request. The state is derived from the values with which the request
 * starts, so a browser that is redirected to the provider again uses the same upstream request. One of these
 * values, the handle, is a secret of the browser.
 */
export const upstreamState = (
  context: Context,
  { handle, provider_id, linking = '' as UserId, reauthenticate = false }: Omit<UpstreamRequest, 'profile'>,
): Secret => boundHandle(context, 'state', `${handle} ${provider_id} ${linking} ${reauthenticate}`) as Secret

/** Stores an upstream request. Writes nothing when the same request is already stored. */
export const storeSentRequest = async (
  context: Context,
  state: Secret,
  upstream: Pick<UpstreamRequestRow, 'browser_hash'> & UpstreamRequest,
): Promise<void> => {
  const key = { state_hash: hashSecret(state), step: 'sent', now: context.clock.now() } as const
  if (await context.store.read(q => findUpstreamRequest(q, key))) return
  await storeUpstreamRequest(context, state, { ...upstream, step: 'sent' })
}

/** Stores an upstream request under a single-use secret. */
const storeUpstreamRequest = async (
  context: Context,
  state: Secret,
  {
    step,
    browser_hash,
    provider_id,
    ...content
  }: Pick<UpstreamRequestRow, 'step' | 'browser_hash'> & UpstreamRequest,
): Promise<void> => {
  const now = context.clock.now()
  const state_hash = hashSecret(state)
  const sealed = context.master.seal(Buffer.from(JSON.stringify(content)), labelOf({ state_hash }))
  const row = {
    state_hash,
    step,
    browser_hash,
    provider_id,
    sealed,
    created_at: now,
    // An upstream request has the same lifetime as a pending request.
    expires_at: now + PENDING_FOR,
  }
  await context.store.write(tx => insertUpstreamRequest(tx, row))
}

interface CallbackState {
  state: string
  browser_hash: SecretHash
  provider: Pick<IdentityProvider, 'id'>
}

/**
 * Deletes and returns the upstream request that this browser started at this provider. Only one call gets the
 * upstream request.
 */
export const endUpstreamRequest = async (
  context: Context,
  { state, browser_hash, provider }: CallbackState,
): Promise<Stored | undefined> => {
  const key = { state_hash: hashSecret(state), step: 'sent', browser_hash, provider_id: provider.id } as const
  const row = await context.store.write(tx =>
    consumeUpstreamRequest(tx, { ...key, now: context.clock.now() }),
  )
  return row && open(context, row)
}

/**
 * True when this browser has a pending upstream request with this state. Without `browser_hash`, the request
 * may belong to any browser, because a cross-site POST comes without the cookie.
 */
export const isPendingUpstream = async (
  context: Context,
  { state, provider, ...browser }: Omit<CallbackState, 'browser_hash'> & Partial<CallbackState>,
): Promise<boolean> => {
  const key = { state_hash: hashSecret(state), step: 'sent', provider_id: provider.id, ...browser } as const
  const found = await context.store.read(q => findUpstreamRequest(q, { ...key, now: context.clock.now() }))
  return found !== undefined
}

/**
 * Stores the asserted profile until the user submits the account-linking or complete-profile form. Returns
 * the handle of the page with this form.
 */
export const storePendingLink = async (
  context: Context,
  upstream: Pick<UpstreamRequestRow, 'browser_hash'> & StoredIdentity,
): Promise<Secret> => {
  const handle = newSecret()
  await storeUpstreamRequest(context, handle, { ...upstream, step: 'answered' })
  return handle
}

export type StoredIdentity = UpstreamRequest & {
  profile: UpstreamProfile
  round: number
  provider_version: number
}

/**
 * Returns the verified identity that waits for an account-linking or complete-profile form of this browser.
 */
export const findStoredIdentity = async (
  context: Context,
  handle: string,
  browser_hash: SecretHash,
): Promise<StoredIdentity | undefined> => {
  const key = { state_hash: hashSecret(handle), step: 'answered', browser_hash } as const
  const row = await context.store.read(q => findUpstreamRequest(q, { ...key, now: context.clock.now() }))
  return row && (open(context, row) as StoredIdentity)
}

/**
 * Derives a value for one purpose from the state. Only this server can compute the value, so the value is not
 * stored.
 */
export const boundHandle = ({ master }: Context, purpose: string, state: string): string =>
  master.hmac('upstream').update(`${purpose}\0${state}`).digest('base64url')

/**
 * Returns a parameter of a provider's answer. Returns an empty string when the parameter is missing or
 * repeated. No upstream request has an empty state.
 */
export const soleParameter = (parameters: URLSearchParams, name: string): string => {
  const [value = '', ...more] = parameters.getAll(name)
  return more.length > 0 ? '' : value
}
