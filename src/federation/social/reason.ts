import * as client from 'openid-client'
import { causesOf } from '#src/federation/refusal.ts'
import { OutboundError } from '#src/http/outbound.ts'

type ReasonRule = (error: Error & { code?: unknown; cause?: unknown }) => string | undefined

/**
 * Returns the claim or attribute that a library error names. The name comes from the library, never from the
 * provider.
 */
const named = ({ cause }: { cause?: unknown }, key: 'claim' | 'attribute'): string | undefined =>
  typeof cause === 'object' && cause !== null && key in cause
    ? String((cause as Record<string, unknown>)[key])
    : undefined

const messages: [RegExp, string][] = [
  [/"alg" header|unsupported JWS/, 'id_token_alg'],
  [/signature/, 'id_token_signature'],
  [/ID Token|JWT|"id_token"/, 'id_token'],
]

const reasonRules: ReasonRule[] = [
  error => (error instanceof OutboundError ? 'provider_unreachable' : undefined),
  error => {
    if (!(error instanceof client.AuthorizationResponseError)) return undefined
    return error.error === 'access_denied' ? 'access_denied' : 'provider_error'
  },
  error => (error instanceof client.ResponseBodyError ? 'code_refused' : undefined),
  error => (error.code === 'OAUTH_KEY_SELECTION_FAILED' ? 'id_token_key' : undefined),
  error => {
    const claim = named(error, 'claim') ?? /^JWT "(\w+)" .*claim missing/.exec(error.message)?.[1]
    return claim && `id_token_${claim}`
  },
  error => (named(error, 'attribute') === 'sub' ? 'userinfo_sub' : undefined),
  error => messages.find(([pattern]) => pattern.test(error.message))?.[1],
]

/**
 * Returns the audit log's reason for an error of openid-client. The server's log contains the error messages.
 */
export const reasonOf = (error: unknown): string => {
  const links = causesOf(error)
  for (const rule of reasonRules)
    for (const link of links) {
      const reason = rule(link)
      if (reason) return reason
    }
  return 'bad_answer'
}
