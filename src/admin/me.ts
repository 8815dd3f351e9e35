import { z } from 'zod'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'

const Me = z
  .object({
    kind: z.enum(['client', 'user']).describe('Whether the token is a client’s own or a user’s.'),
    id: z.string().describe('Id of the user, or the `client_id`.'),
    organization_id: z.string().describe('Organization of the caller.'),
    instance: z.boolean().describe('Whether the caller may act on all organizations.'),
    permissions: z.array(z.string()).describe('Permissions that both the caller and the token have.'),
  })
  .meta({
    id: 'Me',
    description: 'The caller of the admin API.',
    example: {
      kind: 'user',
      id: example.user_id,
      organization_id: example.organization_id,
      instance: true,
      permissions: ['users:read', 'users:update', 'profile:read'],
    },
  })

/** The route that returns the caller and its permissions. */
export const meRoutes: AdminRoute[] = [
  route({
    id: 'getMe',
    method: 'GET',
    path: '/me',
    permission: 'profile:read',
    summary: 'Get the caller with its permissions',
    status: 200,
    answer: Me,
    handle: async ({ caller: { kind, id, organization_id, instance, permissions } }) => ({
      kind,
      id,
      organization_id,
      instance,
      permissions: [...permissions],
    }),
  }),
]
