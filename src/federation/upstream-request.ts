import { createHmac } from 'node:crypto'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/store.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { IdentityProviderId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'
import type { Profile } from './profile.ts'
import { consumeJourney, findJourney, insertJourney, type JourneyRow } from './store.ts'

/** As long as the authorization that it belongs to. */
const LASTS = 30 * MINUTE

/** What a journey carries, sealed: the handle is a secret of the browser's, and the profile is personal. */
interface Bag {
  /** Of the pending authorization. */
  handle: string
  /** Whose account the other one is to be linked to: a person on their own page asked for it. */
  linking?: UserId | undefined
  /** Whether the provider was asked for a fresh proof. */
  reauthenticate?: boolean
  /** What the provider said; of journeys that have arrived. */
  profile?: Profile
  /** The round of the pending authorization by then; of journeys that have arrived. */
  round?: number
}

export interface Journey extends Bag {
  provider_id: IdentityProviderId
}

const labelOf = ({ state_hash }: Pick<JourneyRow, 'state_hash'>): string => `journey:${state_hash}`

type Stored = Journey & Pick<JourneyRow, 'created_at'>

const open = ({ master }: Context, row: JourneyRow): Stored => ({
  ...(JSON.parse(master.open(row.sealed, labelOf(row)).toString()) as Bag),
  provider_id: row.provider_id,
  created_at: row.created_at,
})

/**
 * The state of a departure. One authorization has one journey to a provider, however often its browser is sent there: the state
 * follows from the handle, which is a secret of that browser.
 */
export const departureState = (
  context: Context,
  { handle, provider_id, linking = '' as UserId, reauthenticate = false }: Omit<Journey, 'profile'>,
): Secret => bound(context, 'state', `${handle} ${provider_id} ${linking} ${reauthenticate}`) as Secret

/** Stores a departure of this browser; nothing is written while it is under way already. */
export const storeDeparture = async (
  context: Context,
  state: Secret,
  journey: Pick<JourneyRow, 'browser_hash'> & Journey,
): Promise<void> => {
  const key = { state_hash: hashSecret(state), step: 'away', now: context.clock.now() } as const
  if (await context.store.read(q => findJourney(q, key))) return
  await storeJourney(context, state, { ...journey, step: 'away' })
}

/** Stores a journey of this browser under a secret that works once. */
const storeJourney = async (
  context: Context,
  state: Secret,
  { step, browser_hash, provider_id, ...bag }: Pick<JourneyRow, 'step' | 'browser_hash'> & Journey,
): Promise<void> => {
  const now = context.clock.now()
  const state_hash = hashSecret(state)
  const sealed = context.master.seal(Buffer.from(JSON.stringify(bag)), labelOf({ state_hash }))
  const row = {
    state_hash,
    step,
    browser_hash,
    provider_id,
    sealed,
    created_at: now,
    expires_at: now + LASTS,
  }
  await context.store.write(tx => insertJourney(tx, row))
}

interface Returned {
  state: string
  browser_hash: SecretHash
  provider: Pick<IdentityProvider, 'id'>
}

/** The journey that this browser began to this provider, once. */
export const endJourney = async (
  context: Context,
  { state, browser_hash, provider }: Returned,
): Promise<Stored | undefined> => {
  const key = { state_hash: hashSecret(state), step: 'away', browser_hash, provider_id: provider.id } as const
  const row = await context.store.write(tx => consumeJourney(tx, { ...key, now: context.clock.now() }))
  return row && open(context, row)
}

/** Whether somebody is on the way to the provider under this state: asked where the browser's cookie does not come along. */
export const isAway = async (context: Context, { state, provider }: Omit<Returned, 'browser_hash'>) => {
  const key = { state_hash: hashSecret(state), step: 'away', provider_id: provider.id } as const
  const found = await context.store.read(q => findJourney(q, { ...key, now: context.clock.now() }))
  return found !== undefined
}

/** Keeps what the provider said until the person has answered what is left; gives the handle of the page that asks. */
export const storeArrival = async (
  context: Context,
  journey: Pick<JourneyRow, 'browser_hash'> & Arrived,
): Promise<Secret> => {
  const handle = newSecret()
  await storeJourney(context, handle, { ...journey, step: 'arrived' })
  return handle
}

export type Arrived = Journey & { profile: Profile; round: number }

export const findArrival = async (
  context: Context,
  handle: string,
  browser_hash: SecretHash,
): Promise<Arrived | undefined> => {
  const key = { state_hash: hashSecret(handle), step: 'arrived', browser_hash } as const
  const row = await context.store.read(q => findJourney(q, { ...key, now: context.clock.now() }))
  return row && (open(context, row) as Arrived)
}

/** A value that only this server can tell from the state, for one purpose: nothing of it needs to be stored. */
export const bound = ({ master }: Context, purpose: string, state: string): string =>
  createHmac('sha256', master.derive('journey')).update(`${purpose}\0${state}`).digest('base64url')
