import type { Rules } from './access.ts'

/** Name of the security scheme in `security`; declare it in `components.securitySchemes`. */
export const SECURITY_SCHEME = 'gatehouse'

/**
 * Returns the security scheme of an OpenAPI document.
 *
 * @param issuer the issuer of the tokens; a verifier has this property
 *
 * @example
 * components: { securitySchemes: { [SECURITY_SCHEME]: securityScheme(verifier) } }
 */
export const securityScheme = ({ issuer }: { issuer: string }) => ({
  type: 'openIdConnect' as const,
  openIdConnectUrl: `${issuer}/.well-known/openid-configuration`,
})

/** Returns the `security` of an operation. In OpenAPI an empty entry means that the token is optional. */
export function securityOf(auth: Rules | true): Record<string, string[]>[] {
  const { scopes = [], optional = false }: Rules = auth === true ? {} : auth
  return [{ [SECURITY_SCHEME]: [...scopes] }, ...(optional ? [{}] : [])]
}
