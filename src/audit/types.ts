/** The event types of the audit log. */
export const eventTypes = [
  'user.created',
  'user.updated',
  'user.deleted',
  'user.enabled',
  'user.disabled',
  'user.registered',
  'user.approved',
  'user.terms_accepted',
  'user.password_changed',
  'user.password_reset',
  'user.code_sent',
  'user.browser_remembered',
  'user.browser_forgotten',
  'user.picture_refused',
  'user.first_factor_proven',
  'user.login',
  'user.login_failed',
  'user.logout',
  'user.mfa_enabled',
  'user.mfa_disabled',
  'user.unlocked',
  'token.issued',
  'token.refreshed',
  'token.revoked',
  'token.introspected',
  'session.created',
  'session.revoked',
  'session.expired',
  'client.created',
  'client.updated',
  'client.deleted',
  'client.secret_regenerated',
  'client.request_refused',
  'client.registered',
  'client.first_used',
  'client.metadata_changed',
  'client.forgotten',
  'initial_access_token.created',
  'api.created',
  'api.updated',
  'api.deleted',
  'role.created',
  'role.updated',
  'role.deleted',
  'group.created',
  'group.updated',
  'group.deleted',
  'identity_provider.created',
  'identity_provider.updated',
  'identity_provider.deleted',
  'invitation.created',
  'invitation.sent',
  'invitation.accepted',
  'invitation.withdrawn',
  'invitation.refused',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.disabled',
  'organization.created',
  'organization.updated',
  'organization.deleted',
  'admin.settings_changed',
] as const

export type EventType = (typeof eventTypes)[number]

/**
 * The target type is the first word of the event type (`user` of `user.created`). There are two exceptions:
 * token events target a session or a client, and `admin.settings_changed` targets `settings`.
 */
export type TargetType =
  | 'user'
  | 'session'
  | 'client'
  | 'api'
  | 'role'
  | 'group'
  | 'invitation'
  | 'initial_access_token'
  | 'webhook'
  | 'organization'
  | 'identity_provider'
  | 'settings'
