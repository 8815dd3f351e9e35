import { newId, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { searchText } from '#src/storage/search.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Rows with only the values that the schema requires. */
const times = { created_at: 1, updated_at: 1 }

export const organizationRow = (slug: string) => ({
  id: newId('org', 1),
  name: slug,
  slug,
  display_name: slug,
  search_text: slug,
  settings: {},
  ...times,
})

export const userRow = (
  organization_id: OrganizationId,
  username: string,
  names = { first_name: '', last_name: '' },
) => {
  const user = { organization_id, username, email: `${username}@example.org`, ...names }
  return {
    ...user,
    id: newId('usr', 1),
    username_fold: username,
    email_fold: user.email,
    search_text: searchText(user),
    attributes: {},
    password_changed_at: 1,
    ...times,
  }
}

export const roleRow = (organization_id: OrganizationId, name: string) => ({
  id: newId('role', 1),
  organization_id,
  name,
  permissions: ['profile:read'],
  ...times,
})

/**
 * Returns the row that assigns a role to a user. The row has the columns that `user_roles` copies from the
 * user and from the role.
 */
export const holderRow = (user: Tables['users']['$inferSelect'], role: Tables['roles']['$inferSelect']) => {
  const { organization_id, seq, enabled, email_verified, username_fold, email_fold, last_login } = user
  const repeated = { organization_id, seq, enabled, email_verified, username_fold, email_fold, last_login }
  return { user_id: user.id, role_id: role.id, role_name: role.name, ...repeated }
}

export const groupRow = (organization_id: OrganizationId, name: string) => ({
  id: newId('grp', 1),
  organization_id,
  name,
  ...times,
})

export const clientRow = (organization_id: OrganizationId, client_id: string) => ({
  client_id,
  organization_id,
  name: client_id,
  type: 'public' as const,
  redirect_uris: [],
  post_logout_redirect_uris: [],
  web_origins: [],
  grant_types: [],
  scopes: [],
  token_endpoint_auth_method: 'none' as const,
  access_token_ttl: 3600,
  refresh_token_ttl: 3600,
  capabilities: [],
  consent_required: true,
  access_token_typ: 'at+jwt' as const,
  refresh_token_reuse_window: 0,
  ...times,
})

export const sessionRow = (organization_id: OrganizationId, user_id: UserId) => ({
  id: newId('sess', 1),
  user_id,
  client_id: 'app',
  organization_id,
  login_id: newId('login', 1),
  scope: 'openid',
  ip_address: '127.0.0.1',
  user_agent: '',
  started_at: 1,
  last_active_at: 1,
  expires_at: 2,
  due_at: 2,
})

export const eventRow = (organization_id: OrganizationId) => ({
  id: newId('evt', 1),
  type: 'user.login',
  target_id: 'usr_x',
  target_type: 'user',
  organization_id,
  ip_address: '127.0.0.1',
  user_agent: '',
  timestamp: 1,
  metadata: { n: 1 },
  mac: '',
})
