/** Texts of the OpenAPI document that several routes or schemas share. */

export const about = `Users, organizations, roles, groups, clients, APIs, identity providers, sessions, the audit log and webhooks.

Each call carries an access token of a client (\`client_credentials\`) or of a user. A \`PUT\` changes only the fields that are given; a read-only field may be sent back as it was read. With \`If-Match\` a change is refused (412) when the object has changed since it was read. Each answer has the header \`x-request-id\`, which is also in the log.`

export const tags: Record<string, string> = {
  users: 'The users of an organization, their second factors, and help for locked-out users.',
  invitations: 'Links with which a new user, or a user without a credential, gets access.',
  registrations: 'Users who have registered themselves and wait for approval.',
  organizations: 'The tenants of the instance and their settings.',
  roles: 'Named lists of permissions.',
  groups: 'Sets of users that share roles.',
  clients: 'Applications that are registered by administrators.',
  'dynamic-clients':
    'Applications that no administrator registered (RFC 7591, client ID metadata documents).',
  'initial-access-tokens': 'Tokens with which applications register themselves (RFC 7591).',
  apis: 'Services for which tokens are issued separately: such a token names the service as its audience (RFC 8707).',
  'identity-providers': 'OpenID Connect, OAuth 2.0 and SAML providers that an organization trusts.',
  sessions: 'Sessions of users at clients.',
  events:
    'The audit log. No route changes an event. An event is deleted only with its user or organization; `event_retention` moves older events to files.',
  webhooks: 'Addresses that get the audit events of an organization (Standard Webhooks 1.0).',
  statistics: 'Counts of logins, users and tokens.',
  me: 'The caller.',
  settings: 'Settings of the server, for callers of the default organization.',
  keys: 'Signing keys of the server, for callers of the default organization.',
  backups: 'Backups of the server, for callers of the default organization.',
  health: 'Checks of the server, for callers of the default organization.',
}

/** Descriptions of path parameters by name. */
export const pathParameters: Record<string, string> = {
  user_id: 'Id of the user.',
  browser_id: 'Id of the remembered browser.',
  factor_id: 'Id of the second factor.',
  org_id: 'Id or slug of the organization.',
  role_id: 'Id of the role.',
  group_id: 'Id of the group.',
  client_id: '`client_id` of the client.',
  api_id: 'Id of the API.',
  invitation_id: 'Id of the invitation.',
  registration_id: 'Id of the user who waits for approval.',
  provider_id: 'Id or alias of the identity provider.',
  session_id: 'Id of the session.',
  webhook_id: 'Id of the webhook.',
  event_id: 'Id of the event.',
}

/** Descriptions of response headers by name. */
export const headerTexts: Record<string, string> = {
  etag: 'Strong entity tag of the fields that `PUT` may change (RFC 9110 section 8.8.3).',
  'x-request-id': 'Id of the request, as in the log.',
  'retry-after': 'Seconds to wait before another try.',
  'www-authenticate': 'Scheme and reason (RFC 6750 section 3).',
}

/** Descriptions of successful answers by HTTP status. */
export const successes: Record<number, string> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Started.',
  204: 'Done; no body.',
}

interface Refusal {
  /** Name of the answer in the components. */
  name: string
  description: string
  /** Headers other than `x-request-id`. */
  header?: string
}

/** Descriptions of refusals by HTTP status. */
export const refusals: Record<number, Refusal> = {
  400: {
    name: 'InvalidRequest',
    description:
      'The body is incomplete or is not valid JSON (UTF-8, at most 64 levels), the cursor is invalid, or the access token was sent in two ways.',
  },
  401: {
    name: 'InvalidToken',
    description:
      'The bearer token is missing or not valid, or its user authenticated too long ago (RFC 9470).',
    header: 'www-authenticate',
  },
  403: {
    name: 'Forbidden',
    description:
      'The caller or its token lacks a permission, the caller may not make this change, or a page of another site calls.',
  },
  404: {
    name: 'NotFound',
    description: 'The object does not exist, or belongs to an organization that the caller may not see.',
  },
  408: { name: 'RequestTimeout', description: 'The body was not complete within 10 seconds.' },
  409: { name: 'Conflict', description: 'The change conflicts with stored data.' },
  412: {
    name: 'PreconditionFailed',
    description:
      'The object has changed since it was read; `current` is the object as it is stored, if the caller may read it.',
    header: 'etag',
  },
  413: { name: 'PayloadTooLarge', description: 'The body is larger than 1 MiB.' },
  415: { name: 'UnsupportedMediaType', description: 'The body is compressed, or is not application/json.' },
  422: { name: 'ValidationFailed', description: 'A field or parameter is not valid; `details` names each.' },
  429: {
    name: 'RateLimited',
    description:
      'Too many mails for this mailbox or organization, too many open streams, too many tests of connections, or too many calls to addresses that administrators choose.',
    header: 'retry-after',
  },
  503: {
    name: 'TemporarilyUnavailable',
    description: 'The server is overloaded, or its database is unavailable.',
    header: 'retry-after',
  },
}
