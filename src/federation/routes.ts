import { Elysia } from 'elysia'
import type { Context } from '#src/context.ts'
import { pageBoundary } from '#src/pages/boundary.ts'
import { getArrival, postArrival } from './linking-pages.ts'
import { samlRoutes } from './saml/routes.ts'
import { socialRoutes } from './social/routes.ts'

/** Logins through identity providers, and the pages between a provider's word and a user of ours. */
export const federationRoutes = (context: Context) =>
  new Elysia({ strictPath: true })
    .get('/oauth/arrival', pageBoundary(context, getArrival(context)))
    .post('/oauth/arrival', pageBoundary(context, postArrival(context)), { parse: 'none' })
    .use(socialRoutes(context))
    .use(samlRoutes(context))
