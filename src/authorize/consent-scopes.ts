import { hashSecret, type SecretHash } from '#src/lib/secrets.ts'
import { apisOffering } from '#src/protocol/oauth/resource.ts'
import type { Flow } from './flow.ts'

/** Returns the scopes of a request. API scopes that need a role are left out when `held` lacks the role. */
export const offeredScopes = (
  { request, apis }: Pick<Flow, 'request' | 'apis'>,
  held: ReadonlySet<string>,
): readonly string[] => request.scopes.filter(scope => apisOffering(apis, scope, held)?.length !== 0)

/**
 * Returns the offered scopes of a request in the form that consents have. A scope of an API is stored as
 * `API_ID/SCOPE`, because another API may have a scope with the same name, and a later API may even have the
 * same identifier. Each `API_ID` is also stored alone, because a token without scopes may give access to the
 * API.
 */
export const consentScopes = (
  { request, apis }: Pick<Flow, 'request' | 'apis'>,
  held: ReadonlySet<string>,
): readonly string[] => [
  ...apis.map(({ id }) => id),
  ...request.scopes.flatMap(
    scope => apisOffering(apis, scope, held)?.map(({ id }) => `${id}/${scope}`) ?? scope,
  ),
]

/**
 * Returns the hash of the scopes that a consent page shows. An approval counts only for scopes with the same
 * hash, because roles and APIs may change while the page is open.
 */
export const shownScopes = (flow: Pick<Flow, 'request' | 'apis'>, held: ReadonlySet<string>): SecretHash =>
  hashSecret(consentScopes(flow, held).join(' '))
