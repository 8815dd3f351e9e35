/** Every permission string, in the order of the specification's table; `*` is none of them and covers all. */
export const permissions = [
  ...verbs('users', 'read', 'create', 'update', 'delete'),
  ...verbs('roles', 'read', 'create', 'update', 'delete'),
  ...verbs('organizations', 'read', 'create', 'update', 'delete'),
  ...verbs('clients', 'read', 'create', 'update', 'delete'),
  ...verbs('groups', 'read', 'create', 'update', 'delete'),
  ...verbs('identity_providers', 'read', 'create', 'update', 'delete'),
  ...verbs('sessions', 'read', 'revoke'),
  ...verbs('events', 'read'),
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
 * The permissions that a role's list or a token's scopes stand for. `*` (only the built-in role `admin` holds it)
 * and the scope `admin` stand for all, later ones included; other strings stand for themselves or for nothing.
 */
export const expand = (granted: Iterable<string>): Set<Permission> => {
  const held = new Set<Permission>()
  for (const text of granted) {
    if (text === '*' || text === 'admin') return new Set(permissions)
    if (isPermission(text)) held.add(text)
  }
  return held
}

/** Granting these needs no right of one's own: every user has them. */
const free: ReadonlySet<string> = new Set(['profile:read', 'profile:update'])

/** The permissions among `wanted` that `held` lacks: nobody grants, or acts on a holder of, what they lack. */
export const exceeding = (held: ReadonlySet<string>, wanted: Iterable<string>): Permission[] =>
  [...expand(wanted)].filter(permission => !held.has(permission) && !free.has(permission))
