import type { Context } from '#src/context.ts'
import { pageRoutes } from '#src/pages/page-routes.ts'
import { getLinkingPage, postLinkingForm } from './linking-pages.ts'
import { samlRoutes } from './saml/routes.ts'
import { socialRoutes } from './social/routes.ts'

/**
 * Returns the routes of logins through identity providers, and of the pages that link an upstream account to
 * a local user.
 */
export const federationRoutes = (context: Context) => [
  ...pageRoutes(context, {
    'GET /oauth/link-account': getLinkingPage(context),
    'POST /oauth/link-account': postLinkingForm(context),
  }),
  ...socialRoutes(context),
  ...samlRoutes(context),
]
