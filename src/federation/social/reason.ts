import * as client from 'openid-client'
import { causesOf } from '#src/federation/refusal.ts'
import { OutboundError } from '#src/http/outbound.ts'

/** The token that the library checks: the ID token, or a signed answer of the userinfo endpoint. */
type Checked = 'id_token' | 'userinfo'

type ReasonRule = (error: Error & { code?: unknown; cause?: unknown }, checked: Checked) => string | undefined

/**
 * Returns the claim or attribute that a library error names. The name comes from the library, never from the
 * provider.
 */
const named = ({ cause }: { cause?: unknown }, key: 'claim' | 'attribute'): string | undefined =>
  typeof cause === 'object' && cause !== null && key in cause
    ? String((cause as Record<string, unknown>)[key])
    : undefined

/** Endings of the reason, by message. */
const messages: [RegExp, string][] = [
  [/"alg" header|unsupported JWS/, '_alg'],
  [/signature/, '_signature'],
  [/ID Token|JWT|"id_token"/, ''],
]

const reasonRules: ReasonRule[] = [
  error => (error instanceof OutboundError ? 'provider_unreachable' : undefined),
  error => {
    if (!(error instanceof client.AuthorizationResponseError)) return undefined
    return error.error === 'access_denied' ? 'access_denied' : 'provider_error'
  },
  error => (error instanceof client.ResponseBodyError ? 'code_refused' : undefined),
  (error, checked) => (error.code === 'OAUTH_KEY_SELECTION_FAILED' ? `${checked}_key` : undefined),
  (error, checked) => {
    const claim = named(error, 'claim') ?? /^JWT "(\w+)" .*claim missing/.exec(error.message)?.[1]
    return claim && `${checked}_${claim}`
  },
  error => (named(error, 'attribute') === 'sub' ? 'userinfo_sub' : undefined),
  (error, checked) => {
    const found = messages.find(([pattern]) => pattern.test(error.message))
    return found && `${checked}${found[1]}`
  },
]

/**
 * Returns the audit log's reason for an error of openid-client. The server's log contains the error messages.
 */
export const reasonOf = (error: unknown, checked: Checked = 'id_token'): string => {
  const links = causesOf(error)
  for (const rule of reasonRules)
    for (const link of links) {
      const reason = rule(link, checked)
      if (reason) return reason
    }
  return 'bad_answer'
}
