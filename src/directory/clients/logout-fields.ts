import { z } from 'zod'
import { flag, isWebUrl } from '#src/directory/fields.ts'

/** https://openid.net/specs/openid-connect-backchannel-1_0.html#BCRegistration */
const logout_uri = z
  .string('An https URI.')
  .max(2048, 'At most 2048 characters.')
  .refine(
    isWebUrl,
    'An absolute https URI without fragment or credentials, or http if `outbound_allow` lists the host and port.',
  )

/** Fields of a client about back-channel logout. */
export const logoutFields = {
  backchannel_logout_uri: logout_uri
    .nullable()
    .describe(
      'URI that gets a logout token when a session has ended (OpenID Connect Back-Channel Logout 1.0). If the client lacks the grant `refresh_token`, a session expires together with its access token. A sign-out after the expiry is not reported.',
    ),
  backchannel_logout_session_required: flag.describe(
    'Whether the application needs `sid` in logout tokens. All logout tokens have it.',
  ),
  backchannel_logout_on_expiry: flag.describe(
    'Whether Gatehouse also sends a logout token for a session that expires.',
  ),
}

export const logoutDefaults = {
  backchannel_logout_uri: logoutFields.backchannel_logout_uri.default(null),
  backchannel_logout_session_required: logoutFields.backchannel_logout_session_required.default(false),
  backchannel_logout_on_expiry: logoutFields.backchannel_logout_on_expiry.default(false),
}
