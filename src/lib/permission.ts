/** All permissions, in the order of the documentation. `*` grants all of them and is not in the list. */
export const permissions = [
  ...verbs('users', 'read', 'create', 'update', 'delete'),
  ...verbs('roles', 'read', 'create', 'update', 'delete'),
  ...verbs('organizations', 'read', 'create', 'update', 'delete'),
  ...verbs('clients', 'read', 'create', 'update', 'delete'),
  ...verbs('apis', 'read', 'create', 'update', 'delete'),
  ...verbs('groups', 'read', 'create', 'update', 'delete'),
  ...verbs('identity_providers', 'read', 'create', 'update', 'delete'),
  ...verbs('sessions', 'read', 'revoke'),
  ...verbs('events', 'read'),
  ...verbs('webhooks', 'read', 'create', 'update', 'delete'),
  ...verbs('settings', 'read', 'update'),
  ...verbs('profile', 'read', 'update'),
] as const

export type Permission = (typeof permissions)[number]

function verbs<R extends string, V extends string>(resource: R, ...names: V[]): `${R}:${V}`[] {
  return names.map(name => `${resource}:${name}` as const)
}

const known: ReadonlySet<string> = new Set(permissions)

const isPermission = (text: string): text is Permission => known.has(text)

/**
 * Returns the permissions that a role's list or a token's scopes grant. `*` (only in the built-in role
 * `admin`) and the scope `admin` grant all permissions. These include permissions that a later version adds,
 * so that administrators have them after an upgrade. An unknown string grants nothing.
 */
export const expand = (granted: Iterable<string>): Set<Permission> => {
  const held = new Set<Permission>()
  for (const text of granted) {
    if (text === '*' || text === 'admin') return new Set(permissions)
    if (isPermission(text)) held.add(text)
  }
  return held
}

/**
 * Permissions of the built-in role `user`, which anyone may grant. They concern the user's own account only.
 */
const free: ReadonlySet<string> = new Set(['profile:read', 'profile:update'])

/**
 * Returns the permissions of `wanted` that `held` lacks, except those of the built-in role `user`. Callers
 * must not grant a permission that they lack, and must not act on a user, role or other object that has such
 * a permission. Otherwise they could extend their own rights, directly or through another account.
 */
export const exceeding = (held: ReadonlySet<string>, wanted: Iterable<string>): Permission[] =>
  [...expand(wanted)].filter(permission => !held.has(permission) && !free.has(permission))

/** True when a permission beyond those of the built-in role `user` is granted. */
export const isAdministrative = (granted: Iterable<string>): boolean =>
  exceeding(new Set(), granted).length > 0
