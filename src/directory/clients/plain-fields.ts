/** The presentation fields of a client that shows people only its name. */
export const plainPresentation = {
  logo: null,
  client_uri: null,
  policy_uri: null,
  tos_uri: null,
  initiate_login_uri: null,
}

/** The fields of a client without back-channel logout. */
export const noLogouts = {
  backchannel_logout_uri: null,
  backchannel_logout_session_required: false,
  backchannel_logout_on_expiry: false,
}
