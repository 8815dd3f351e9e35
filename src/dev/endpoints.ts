/**
 * Short names of endpoints. A fault may name a path instead. A path that ends in * matches all paths with
 * that prefix.
 */
export const endpoints = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  revoke: '/oauth/revoke',
  introspect: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
  logout: '/oauth/logout',
  discovery: '/.well-known/openid-configuration',
  jwks: '/.well-known/jwks.json',
} as const

/** True for one of the short names. */
export const isEndpoint = (name: string): name is keyof typeof endpoints => Object.hasOwn(endpoints, name)
