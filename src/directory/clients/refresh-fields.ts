import { flag, integer } from '#src/directory/fields.ts'

/** Fields of a client about the answers to its refreshes. */
export const refreshFields = {
  // At most 30 seconds, because a stolen token still works in this window. A client that did not get the
  // answer repeats its request within seconds.
  refresh_token_reuse_window: integer(0, 30).describe(
    'Seconds for which a used refresh token is still accepted, because the client may not have got the response. 0: a used token is refused.',
  ),
  id_token_on_refresh: flag.describe(
    'Whether a refresh also gives a new ID token if the scopes include `openid`, for kubectl, MSAL and other libraries that need one (OpenID Connect Core section 12.2). A session that began before the field was set gets none.',
  ),
}

/**
 * A refresh gives no ID token unless a client needs one, because a signature with RS256 costs 28 times as
 * much as the ES256 signature of the access token.
 */
export const refreshDefaults = {
  refresh_token_reuse_window: refreshFields.refresh_token_reuse_window.default(0),
  id_token_on_refresh: refreshFields.id_token_on_refresh.default(false),
}
