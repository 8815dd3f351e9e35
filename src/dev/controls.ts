import { z } from 'zod'
import { hostActor } from '#src/audit/record.ts'
import { eventTypes } from '#src/audit/types.ts'
import type { Context } from '#src/context.ts'
import { integer, line, oneOf } from '#src/directory/fields.ts'
import { readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { whenTaken } from '#src/directory/store.ts'
import { addFactor } from '#src/directory/users/factors/service.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { userAnswer } from '#src/directory/users/schema.ts'
import { deleteUser } from '#src/directory/users/service.ts'
import { findUserForLogin, roleNamesOf } from '#src/directory/users/store.ts'
import { empty, json } from '#src/http/answer.ts'
import { readJson } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { digits } from '#src/http/list.ts'
import { AppError, notFound } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import type { CapturedMail } from '#src/mail/captured.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import { applySeed } from '#src/seed/apply.ts'
import { readSeed, SeedError } from '#src/seed/read.ts'
import { currentCode, offerSecret, sealSecret } from '#src/sign-in/totp.ts'
import { activateKey, keyStates, pinKey, retireKey } from '#src/tokens/manual-keys.ts'
import { revokeKey, rotateKey } from '#src/tokens/rotation.ts'
import type { DevClock } from './clock.ts'
import { eventStream } from './event-stream.ts'
import { Fault } from './fault-schema.ts'
import type { openFaults } from './faults.ts'
import { mint } from './mint.ts'
import { Mint } from './mint-schema.ts'
import type { Recorder } from './recorder.ts'
import { filteredEventsAfter, firstUsers, restoreAll, restoreOrganization, type Snapshot } from './store.ts'

/** The parts of a running development server that the controls read and change. */
export interface DevState {
  context: Context
  clock: DevClock
  faults: ReturnType<typeof openFaults>
  recorder: Recorder
  /** Captured mails. */
  mail: CapturedMail
  /** Returns the rows as they were after the seed. */
  snapshot: () => Promise<Snapshot>
  /** Client secrets of the seed and of the admin client, by client id. */
  secrets: ReadonlyMap<string, string>
  /** Password of the users of the default seed. */
  password: string
  /** True when other machines can reach the server. The server then has no user picker. */
  exposed: boolean
  /** Client of a minted token when the call names no client. */
  client_id: string
}

const Named = z.strictObject({ user: line(256, 1), organization: line(64, 1).default('default') })

const Reset = z.strictObject({
  /** Slug of the organization to reset. Default: everything, also the clock, faults, records and mail. */
  organization: line(64, 1).optional(),
})

const TAKEN =
  'Another organization has taken a client id or another name of this organization. Reset the whole server.'

const time = z.union(
  [z.iso.datetime({ offset: true }).transform(text => Date.parse(text)), z.int()],
  'An ISO 8601 time, or milliseconds since 1970.',
)

const SetClock = z.strictObject({
  /** Stops the clock. */
  freeze: z.literal(true).optional(),
  set: time.optional(),
  /** Milliseconds. A negative number sets the clock back. */
  advance: z.int('A whole number of milliseconds.').optional(),
  /** Follows the machine's clock again, without an offset. */
  reset: z.literal(true).optional(),
})
export type SetClock = z.input<typeof SetClock>

/** @throws AppError 422 for a time that tokens and pages cannot show: before 1970 or after 9999 */
export const requireShowable = (time: number, field: 'set' | 'advance'): void => {
  if (time >= 0 && time < Date.UTC(10_000, 0)) return
  const message = 'The clock shows only times of the years 1970 to 9999.'
  throw invalid([{ field, code: 'out_of_range', message }])
}

const Seq = integer(0, Number.MAX_SAFE_INTEGER).optional()
const kid = line(256, 1)
const SetKeys = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.literal('publish'), alg: oneOf(signingAlgs) }),
    z.strictObject({ action: z.literal('activate'), kid }),
    z.strictObject({ action: z.literal('retire'), kid }),
    z.strictObject({ action: z.literal('revoke'), kid }),
    z.strictObject({ action: z.literal('pin'), jwk: z.record(z.string(), z.unknown()) }),
  ],
  'One of: publish, activate, retire, revoke, pin.',
)
export type SetKeys = z.input<typeof SetKeys>

const invalid = (details: { field: string; code: string; message: string }[]) =>
  new AppError('validation_failed', 'The body is not valid.', { details })

const parse = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> => {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw invalid(
    result.error.issues.map(({ path, code, message }) => ({ field: path.join('.'), code, message })),
  )
}

const searchParamsOf = (call: Call) => new URL(call.request.url).searchParams

const organizationOf = async ({ context }: DevState, slug: string): Promise<OrganizationId> => {
  const organization = await context.store.read(q => readOrganizationBySlug(q, slug))
  if (!organization) throw notFound('The organization')
  return organization.id
}

const scopeOf = async (state: DevState, call: Call): Promise<OrganizationId | undefined> => {
  const slug = searchParamsOf(call).get('organization')
  return slug === null ? undefined : organizationOf(state, slug)
}

/** Finds a user by user name or e-mail address. */
const userOf = async (state: DevState, { user: name, organization }: z.output<typeof Named>) => {
  const home = await organizationOf(state, organization)
  const user = await state.context.store.read(q => findUserForLogin(q, home, name))
  if (!user) throw notFound('The user')
  return user
}

type Control = (state: DevState, call: Call) => Promise<Response> | Response

/** Applies a seed to the running server. A mistake in the seed gets the same message as in a seed file. */
const seed = async ({ context }: DevState, input: unknown): Promise<Response> => {
  try {
    return json({ changes: await applySeed(context, readSeed(input), { any_password: true }) })
  } catch (error) {
    if (!(error instanceof SeedError)) throw error
    throw new AppError('validation_failed', `The seed is refused; ${error.kept}.`, {
      details: error.mistakes.map(({ path, message }) => ({ field: path, code: 'seed', message })),
    })
  }
}

/** Refills all rate limits. Test workers that share a server use them up together. */
const refill = ({ context }: DevState): void => {
  for (const buckets of Object.values(context.charges)) buckets.clear()
}

/**
 * Resets data, clock, faults, records, mail and rate limits to their state after the seed. Signing keys and
 * settings of the server are not reset (`KEPT` in store.ts).
 */
export const resetAll = async (state: DevState): Promise<void> => {
  const { context, clock, faults, recorder, mail } = state
  const data = await state.snapshot()
  await context.store.write(tx => restoreAll(tx, data))
  refill(state)
  clock.reset()
  faults.clear()
  recorder.clear()
  mail.clear()
}

/** Handlers of the controls, by method and path. */
export const controls: Record<string, Control> = {
  'POST /dev/mint': async (state, call) => {
    const wanted = parse(Mint, await readJson(call.request))
    const { client_id = state.client_id, kind } = wanted
    const caller = { client_id, client_info: call }
    const { token, claims, expires_in } = await mint(state.context, wanted, caller)
    state.recorder.issued({ client_id, grant_type: 'mint', kind, token })
    return json({ token, token_type: 'Bearer', expires_in, claims })
  },

  'POST /dev/seed': async (state, call) => seed(state, await readJson(call.request)),
  'GET /dev/users': async (state, call) => {
    const id = await scopeOf(state, call)
    const users = await state.context.store.read(async q =>
      roleNamesOf(q, await firstUsers(q, id && [id], 1_000)),
    )
    return json({ data: users.map(userAnswer) })
  },
  'POST /dev/users': async (state, call) => seed(state, { users: [await readJson(call.request)].flat() }),
  'DELETE /dev/users': async (state, call) => {
    const user = await userOf(state, parse(Named, Object.fromEntries(searchParamsOf(call))))
    await deleteUser(state.context, user.id, hostActor)
    return empty(204)
  },

  /** Enrols a TOTP factor for a user and returns its secret. */
  'POST /dev/mfa': async (state, call) => {
    const user = await userOf(state, parse(Named, await readJson(call.request)))
    const { context } = state
    const secret = offerSecret(context, user.id)
    const factor = {
      type: 'totp',
      name: 'Development',
      secret: sealSecret(context, user.id, secret),
    } as const
    await context.store.write(tx => addFactor(context, tx, user, factor, hostActor))
    return json({ secret }, 201)
  },
  /** Returns the current codes of a user's TOTP factors. */
  'GET /dev/mfa': async (state, call) => {
    const user = await userOf(state, parse(Named, Object.fromEntries(searchParamsOf(call))))
    const factors = await state.context.store.read(q => listFactors(q, user.id))
    return json({ codes: factors.flatMap(factor => currentCode(state.context, factor) ?? []) })
  },

  'POST /dev/reset': async (state, call) => {
    const { organization } = parse(Reset, call.request.body ? await readJson(call.request) : {})
    if (organization !== undefined) {
      const { clock, store } = state.context
      const snapshot = await state.snapshot()
      const known = snapshot.get('organizations')?.find(({ slug }) => slug === organization)
      const id = (known?.id as OrganizationId | undefined) ?? (await organizationOf(state, organization))
      await store
        .write(tx => restoreOrganization(tx, snapshot, id, clock.now()))
        .catch(whenTaken('organization', TAKEN))
      refill(state)
    } else await resetAll(state)
    return empty(204)
  },

  'GET /dev/clock': ({ clock }) => json({ now: iso(clock.now()), frozen: clock.isFrozen() }),
  'POST /dev/clock': async ({ clock }, call) => {
    const { reset, freeze, set, advance } = parse(SetClock, await readJson(call.request))
    const from = set ?? (reset ? Date.now() : clock.now())
    requireShowable(from + (advance ?? 0), set === undefined ? 'advance' : 'set')
    if (reset) clock.reset()
    if (freeze) clock.freeze()
    if (set !== undefined) clock.set(set)
    if (advance !== undefined) clock.advance(advance)
    return json({ now: iso(clock.now()), frozen: clock.isFrozen() })
  },

  'GET /dev/keys': async ({ context }) => json({ keys: await keyStates(context) }),
  'POST /dev/keys': async ({ context }, call) => {
    const wanted = parse(SetKeys, await readJson(call.request))
    if (wanted.action === 'publish') await rotateKey(context, wanted.alg)
    if (wanted.action === 'activate') await activateKey(context, wanted.kid)
    if (wanted.action === 'retire') await retireKey(context, wanted.kid)
    if (wanted.action === 'revoke') await revokeKey(context, wanted.kid)
    if (wanted.action === 'pin') await pinKey(context, wanted.jwk)
    return json({ keys: await keyStates(context) })
  },

  'GET /dev/faults': ({ faults }) => json({ faults: faults.list() }),
  'POST /dev/faults': async ({ faults }, call) => {
    faults.add(parse(Fault, await readJson(call.request)))
    return json({ faults: faults.list() }, 201)
  },
  'DELETE /dev/faults': ({ faults }) => {
    faults.clear()
    return empty(204)
  },

  'GET /dev/requests': ({ recorder }, call) => {
    const query = searchParamsOf(call)
    const [client_id, path] = ['client_id', 'path'].map(name => query.get(name) ?? undefined)
    return json({ data: recorder.requests({ client_id, path }) })
  },
  'DELETE /dev/requests': ({ recorder }) => {
    recorder.clear()
    return empty(204)
  },
  'GET /dev/mail': async ({ context, mail }) => {
    await deliverMails(context)
    return json({ data: mail.mails })
  },
  'DELETE /dev/mail': ({ mail }) => {
    mail.clear()
    return empty(204)
  },
  'GET /dev/tokens': ({ recorder }, call) =>
    json({ data: recorder.tokens({ client_id: searchParamsOf(call).get('client_id') ?? undefined }) }),

  /**
   * Returns audit events as JSON, at most 1,000, or as server-sent events when the Accept header asks for a
   * stream. The stream begins with all existing events whose sequence number is larger than `after`.
   */
  'GET /dev/events': async (state, call) => {
    const query = searchParamsOf(call)
    const type = parse(oneOf(eventTypes).optional(), query.get('type') ?? undefined)
    const after = parse(Seq, digits(query.get('after') ?? undefined))
    const filter = { type, organization_id: await scopeOf(state, call) }
    if (call.request.headers.get('accept')?.includes('text/event-stream'))
      return eventStream(state.context, { after: after ?? 0, filter, signal: call.request.signal })
    const rows = await state.context.store.read(q => filteredEventsAfter(q, after, filter))
    return json({ data: rows.map(({ seq, event }) => ({ seq, ...event })) })
  },
}
