import { eventRoutes } from '#src/audit/routes.ts'
import { userApplicationRoutes } from '#src/authorize/admin-routes.ts'
import { testLoginRoutes } from '#src/authorize/test-login.ts'
import type { Context } from '#src/context.ts'
import { apiRoutes } from '#src/directory/apis/routes.ts'
import { dynamicClientRoutes } from '#src/directory/clients/dynamic-clients.ts'
import { initialAccessTokenRoutes } from '#src/directory/clients/initial-access-tokens.ts'
import { clientRoutes } from '#src/directory/clients/routes.ts'
import { groupRoutes } from '#src/directory/groups/routes.ts'
import { identityProviderRoutes } from '#src/directory/identity-providers/routes.ts'
import { invitationRoutes } from '#src/directory/invitations/routes.ts'
import { inviteUser } from '#src/directory/invitations/service.ts'
import { organizationRoutes } from '#src/directory/organizations/routes.ts'
import { registrationRoutes } from '#src/directory/registrations/routes.ts'
import { roleRoutes } from '#src/directory/roles/routes.ts'
import { sessionRoutes } from '#src/directory/sessions/routes.ts'
import { factorRoutes } from '#src/directory/users/factors/routes.ts'
import { rememberedBrowserRoutes } from '#src/directory/users/remembered-browsers.ts'
import { userRoutes } from '#src/directory/users/routes.ts'
import { connectionRoutes } from '#src/federation/connection.ts'
import { type AdminRoute, serveRoute } from '#src/http/guard.ts'
import { taggedObject } from '#src/http/preconditions.ts'
import { mount } from '#src/http/routes.ts'
import { helpRoutes } from '#src/links/admin-routes.ts'
import { backupRoutes } from '#src/operations/backups.ts'
import { healthRoutes } from '#src/operations/health.ts'
import { settingsRoutes } from '#src/operations/settings.ts'
import { keyRoutes } from '#src/tokens/admin-routes.ts'
import { webhookRoutes } from '#src/webhooks/routes.ts'
import { meRoutes } from './me.ts'

export const ADMIN_PREFIX = '/api/v1/admin'

/** Returns all routes of the admin API, in the order of the OpenAPI document. */
export const adminRoutes = (context: Context): AdminRoute[] => [
  ...userRoutes(context, inviteUser),
  ...factorRoutes(context),
  ...rememberedBrowserRoutes(context),
  ...userApplicationRoutes(context),
  ...helpRoutes(context),
  ...invitationRoutes(context),
  ...registrationRoutes(context),
  ...organizationRoutes(context),
  ...roleRoutes(context),
  ...groupRoutes(context),
  ...clientRoutes(context),
  ...testLoginRoutes(context),
  ...apiRoutes(context),
  ...dynamicClientRoutes(context),
  ...initialAccessTokenRoutes(context),
  ...identityProviderRoutes(context),
  ...connectionRoutes(context),
  ...sessionRoutes(context),
  ...eventRoutes(context),
  ...webhookRoutes(context),
  ...settingsRoutes(context),
  ...keyRoutes(context),
  ...backupRoutes(context),
  ...healthRoutes(context),
  ...meRoutes,
]

/** Mounts all routes of the admin API. */
export const mountAdminRoutes = (context: Context) => {
  const routes = adminRoutes(context)
  return mount(
    Object.fromEntries(
      routes.map(route => [
        `${route.method} ${ADMIN_PREFIX}${route.path}`,
        serveRoute(context, route, taggedObject(routes, route)),
      ]),
    ),
  )
}
