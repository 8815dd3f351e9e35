import { z } from 'zod'
import type { Context, Core } from '#src/context.ts'
import { type ChangedBy, recordChange, requireOrganization } from '#src/directory/access.ts'
import { integer, owner, stored, time } from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { iso } from '#src/lib/text.ts'
import type { Queries } from '#src/storage/store.ts'
import { insertInitialAccessToken } from './initial-access-token-store.ts'

const uses = integer(1, 1000).describe('Number of clients that may register with the token.')

const CreateInitialAccessToken = z
  .strictObject({
    organization_id: owner,
    // By default a token works for a day and for one client, because anyone who gets the token can use it.
    uses: uses.default(1),
    expires_in: integer(60, (90 * DAY) / SECOND)
      .default(DAY / SECOND)
      .describe('Lifetime in seconds; default: a day.'),
  })
  .meta({
    id: 'CreateInitialAccessToken',
    description: 'A new token with which clients register themselves.',
    example: { uses: 5, expires_in: 3600 },
  })
type CreateInitialAccessToken = z.output<typeof CreateInitialAccessToken>

const InitialAccessToken = z
  .object({
    id: stored.id,
    organization_id: stored.organization_id,
    token: z.string().describe('Bearer token for the registration request. The server stores only its hash.'),
    uses,
    expires_at: time.describe('Time from which the token is refused (ISO 8601, UTC).'),
  })
  .meta({
    id: 'InitialAccessToken',
    description: 'A token with which clients register themselves (RFC 7591 section 3).',
    example: {
      id: 'iat_019c1310-e405-7b26-8f3d-c7e41d905a68',
      organization_id: example.organization_id,
      token: 'q3l5Xc0e9RrHkT7mZ1vYw8uJpN2sGfDaB6iOxE4hLCk',
      uses: 5,
      expires_at: example.time,
    },
  })

const judge = async (q: Queries, { organization_id }: Partial<CreateInitialAccessToken>, by: ChangedBy) => ({
  organization_id: (await requireOrganization(q, by.caller, organization_id)).id,
  problems: [],
})

/** Creates a token. Only this answer contains the token, because the server stores only its hash. */
const create = (context: Core, input: CreateInitialAccessToken, by: ChangedBy) =>
  writeAs(context, by.caller, async tx => {
    const { organization_id } = await judge(tx, input, by)
    const now = context.clock.now()
    const token = newSecret()
    const { uses: uses_left } = input
    const expires_at = now + input.expires_in * SECOND
    const id = newId('iat', now)
    await insertInitialAccessToken(tx, {
      ...{ id, organization_id, uses_left, expires_at },
      token_hash: hashSecret(token),
      created_at: now,
    })
    await recordChange(context, tx, by, {
      type: 'initial_access_token.created',
      target_id: id,
      organization_id,
      metadata: { uses: uses_left, expires_at: iso(expires_at) },
    })
    return { id, organization_id, token, uses: uses_left, expires_at: iso(expires_at) }
  })

/** Returns the admin routes of initial access tokens. */
export const initialAccessTokenRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createInitialAccessToken',
    method: 'POST',
    path: '/initial-access-tokens',
    permission: 'clients:create',
    fresh: true,
    summary: 'Create a token with which clients register themselves',
    body: CreateInitialAccessToken,
    status: 201,
    answer: InitialAccessToken,
    review: (q, input, good) => judge(q, good, input),
    handle: input => create(context, input.body, input),
  }),
]
