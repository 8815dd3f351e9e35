import { z } from 'zod'
import type { CalledFor, Context } from '#src/context.ts'
import { getProvider } from '#src/directory/identity-providers/service.ts'
import { address } from '#src/directory/identity-providers/settings.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import { findIdentity } from '#src/directory/store.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { chargeConnectionTest } from '#src/http/rate-limits.ts'
import { notFound } from '#src/lib/app-error.ts'
import { ConnectionCheck } from './connection-checks.ts'
import { testSaml } from './saml/connection.ts'
import { testOAuth2, testOpenId } from './social/connection.ts'

const ConnectionTest = z
  .object({
    ok: z.boolean().describe('False when a check is `bad`.'),
    checks: z.array(ConnectionCheck).describe('The checks, and then the values to enter at the provider.'),
  })
  .meta({
    id: 'ConnectionTest',
    description: 'Checks of the connection to an identity provider.',
    example: {
      ok: true,
      checks: [{ name: 'issuer', status: 'good', message: 'The document names the expected issuer.' }],
    },
  })

const checksOf = (
  context: Context,
  organization: CalledFor,
  provider: IdentityProvider,
  metadata_url: string | undefined,
): Promise<ConnectionCheck[]> => {
  switch (provider.type) {
    case 'oidc':
      return testOpenId(context, organization, provider)
    case 'oauth2':
      return testOAuth2(context, organization, provider)
    case 'saml':
      return testSaml(context, organization, provider, metadata_url)
  }
}

/**
 * Returns the route that tests the connection to an identity provider. Disabled providers can be tested too,
 * because administrators test a provider before users see it. The caller needs the permission for changes,
 * because the test calls other servers, and the caller can choose one of the addresses (`metadata_url`).
 */
export const connectionRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'testIdentityProvider',
    method: 'GET',
    path: '/identity-providers/:provider_id/connection',
    permission: 'identity_providers:update',
    summary: 'Check the connection to an identity provider; nobody is signed in',
    query: z.strictObject({
      metadata_url: address
        .optional()
        .describe('For SAML: address of the metadata, which is compared with the stored settings.'),
    }),
    status: 200,
    answer: ConnectionTest,
    errors: [404, 429],
    handle: async ({ caller, params, query }) => {
      const { provider, organization } = await context.store.read(async q => {
        const provider = await getProvider(q, caller, params.provider_id)
        return { provider, organization: await findIdentity(q, provider.organization_id) }
      })
      if (!organization) throw notFound('The identity provider')
      chargeConnectionTest(context, organization.id)
      const checks = await checksOf(context, organization, provider, query.metadata_url)
      return { ok: checks.every(({ status }) => status !== 'bad'), checks }
    },
  }),
]
