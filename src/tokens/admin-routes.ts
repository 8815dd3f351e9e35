import { z } from 'zod'
import type { Core } from '#src/context.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import { keyStates } from './manual-keys.ts'
import { rotateKeys } from './rotation.ts'

const SigningKey = z
  .object({
    kid: z.string().describe('Key id, as in the key set and in tokens.'),
    alg: z.enum(signingAlgs).describe('Signature algorithm.'),
    state: z
      .enum(['next', 'signing', 'retired'])
      .describe('`next` is published and signs later; `retired` is published and no longer signs.'),
    signs_from: z.string().meta({ format: 'date-time' }).describe('Time from which the key signs.'),
    published_until: z
      .string()
      .meta({ format: 'date-time' })
      .nullable()
      .describe('Time at which the key leaves the key set; null while it is not known.'),
  })
  .meta({
    id: 'SigningKey',
    description: 'A published key of the server.',
    example: {
      kid: 'key_019c1310-e404-7b21-9d0c-5a8e42f61c37',
      alg: 'RS256',
      state: 'signing',
      signs_from: example.time,
      published_until: null,
    },
  })

const SigningKeys = z
  .object({ data: z.array(SigningKey).describe('Published keys, oldest first.') })
  .meta({ id: 'SigningKeys', description: 'The published keys of the server.', example: { data: [] } })

/**
 * Returns the routes of the signing keys. No answer contains a private key, so that a thief with an
 * administrator's token gets no key.
 */
export const keyRoutes = (context: Core): AdminRoute[] => [
  route({
    id: 'listKeys',
    method: 'GET',
    path: '/keys',
    permission: 'settings:read',
    instance_only: true,
    summary: 'List the signing keys',
    status: 200,
    answer: SigningKeys,
    handle: async () => ({ data: await keyStates(context) }),
  }),
  route({
    id: 'rotateKeys',
    method: 'POST',
    path: '/keys/rotate',
    permission: 'settings:update',
    instance_only: true,
    fresh: true,
    summary: 'Publish the next signing key of each algorithm; it signs 15 minutes later',
    status: 200,
    answer: SigningKeys,
    handle: async ({ caller, client_info }) => {
      const by = { actor: { id: caller.id, email: caller.email }, client_info }
      await rotateKeys(context, by, change => writeAs(context, caller, change))
      return { data: await keyStates(context) }
    },
  }),
]
