import type { Rules } from './access.ts'

/** The name that `security` entries use; declare it under `components.securitySchemes`. */
export const SECURITY_SCHEME = 'gatehouse'

/** For `components.securitySchemes` of an OpenAPI document: `{ gatehouse: securityScheme(verifier) }`. */
export const securityScheme = ({ issuer }: { issuer: string }) => ({
  type: 'openIdConnect' as const,
  openIdConnectUrl: `${issuer}/.well-known/openid-configuration`,
})

/** The `security` of an operation. An empty entry is how OpenAPI spells optional. */
export function securityOf(auth: Rules | true): Record<string, string[]>[] {
  const { scopes = [], optional = false }: Rules = auth === true ? {} : auth
  return [{ [SECURITY_SCHEME]: [...scopes] }, ...(optional ? [{}] : [])]
}
