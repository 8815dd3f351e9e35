import type { Context } from './context.ts'
import { json } from './http/answer.ts'
import { callOf } from './http/call.ts'
import { unmatchedError } from './http/method-table.ts'
import { mount } from './http/routes.ts'
import type { Section } from './http/sections.ts'
import { offersPasskeys } from './lib/passkey-site.ts'
import { metricsPage } from './operations/metrics.ts'

/**
 * The routes of the server. A path belongs to the first section whose pattern matches it. The first request
 * to a section loads the section. This shortens the start, and unused sections take no memory.
 */
export const sections = (context: Context, metrics: () => Promise<string>): readonly Section[] => [
  {
    paths: /^\/\.well-known\/(?:openid-configuration|oauth-authorization-server|jwks\.json)$/,
    load: async () => (await import('./oauth/well-known.ts')).wellKnownRoutes(context),
  },
  {
    paths: /^\/oauth\/(?:token|register|revoke|introspect|userinfo)$/,
    load: async () => (await import('./oauth/routes.ts')).tokenRoutes(context),
  },
  {
    paths: /^\/(?:saml|oauth\/(?:social|link-account))(?:\/|$)/,
    load: async () => (await import('./federation/routes.ts')).federationRoutes(context),
  },
  {
    paths: /^\/oauth\/logout$/,
    load: async () => (await import('./oauth/logout.ts')).logoutRoutes(context),
  },
  {
    paths: /^\/oauth\//,
    load: async () => (await import('./authorize/routes.ts')).browserRoutes(context),
  },
  {
    paths: /^\/(?:account|language)(?:\/|$)/,
    load: async () => (await import('./account/routes.ts')).accountRoutes(context),
  },
  {
    paths: /^\/console(?:\/|$)/,
    load: async () => (await import('./console/routes.ts')).consoleRoutes(context),
  },
  {
    paths: /^\/api\/v1\/admin\//,
    load: async () => (await import('./admin/routes.ts')).mountAdminRoutes(context),
  },
  {
    paths: /^\/api\/v1\//,
    load: async () => (await import('./admin/document-routes.ts')).documentRoutes(context),
  },
  {
    paths: /^\/(?:assets\/|favicon\.ico$|apple-touch-icon\.png$)/,
    load: async () => (await import('./operations/asset-routes.ts')).assetRoutes(context),
  },
  { paths: /^/, load: async () => operationalRoutes(context, metrics) },
]

const operationalRoutes = (context: Context, metrics: () => Promise<string>) => {
  const { url } = context.config
  return mount({
    'GET /': () => new Response(null, { status: 303, headers: { location: `${url}/account` } }),
    // https://www.w3.org/TR/change-password-url/
    'GET /.well-known/change-password': () =>
      new Response(null, { status: 302, headers: { location: `${url}/account/change-password` } }),
    // https://www.w3.org/TR/passkey-endpoints/
    'GET /.well-known/passkey-endpoints': ({ request }) => {
      if (!offersPasskeys(context.config)) throw unmatchedError([], callOf(request))
      return json({ enroll: `${url}/account/security/add`, manage: `${url}/account/security` })
    },
    'GET /robots.txt': () =>
      new Response('User-agent: *\nDisallow: /\n', {
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      }),
    // The answer does not depend on the database, because a restart of the server does not end an outage of
    // the database.
    'GET /healthz': () => json({ status: 'ok' }),
    'GET /readyz': async () =>
      (await context.store.ready())
        ? json({ status: 'ready' })
        : // A failed read or write has the same `Retry-After` (`unavailable` in storage/errors.ts).
          json({ status: 'unavailable' }, 503, { 'retry-after': '1' }),
    'GET /metrics': async ({ request }) => {
      const page = await metricsPage(context, request, metrics)
      if (!page) throw unmatchedError([], callOf(request))
      return page
    },
  })
}
