/**
 * What the testing package promises, in words of its own: it imports nothing, so that it can be published, and
 * test/testing/types.test.ts holds it against what the server takes and gives. Over 250 lines on purpose: the whole
 * interface is one page.
 */

export type SigningAlg = 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'ES512'

interface OfOrganization {
  /** Slug. Default `default`. */
  organization?: string
}

export interface SeedUser extends OfOrganization {
  /** `usr_` and a UUID; the `sub` of tokens is the UUID. */
  id?: `usr_${string}`
  username: string
  email: string
  first_name?: string
  last_name?: string
  enabled?: boolean
  email_verified?: boolean
  /** Default: user. */
  roles?: string[]
  attributes?: Record<string, unknown>
  /** For new users. */
  password?: string | { env: string }
  /** A PHC string of argon2, or a bcrypt hash. */
  password_hash?: string
}

export interface SeedClient extends OfOrganization {
  client_id: string
  type: 'confidential' | 'public'
  grant_types: ('authorization_code' | 'refresh_token' | 'client_credentials')[]
  scopes: string[]
  client_secret?: string | { env: string }
  name?: string
  description?: string
  redirect_uris?: string[]
  post_logout_redirect_uris?: string[]
  web_origins?: string[]
  token_endpoint_auth_method?: 'client_secret_basic' | 'client_secret_post' | 'none'
  /** Seconds. */
  access_token_ttl?: number
  refresh_token_ttl?: number
  capabilities?: ('token_introspection' | 'cross_organization')[]
  consent_required?: boolean
  id_token_signed_response_alg?: SigningAlg | null
  access_token_signed_response_alg?: SigningAlg | null
  access_token_typ?: 'at+jwt' | 'JWT'
  refresh_token_reuse_window?: number
}

/** What a server starts with. `gatehouse openapi --seed-schema` prints the whole of it, identity providers included. */
export interface Seed {
  organizations?: {
    id?: `org_${string}`
    slug: string
    name?: string
    display_name?: string
    settings?: object
  }[]
  roles?: ({
    id?: `role_${string}`
    name: string
    description?: string
    permissions: string[]
  } & OfOrganization)[]
  users?: SeedUser[]
  groups?: ({
    id?: `grp_${string}`
    name: string
    description?: string
    roles?: string[]
    members?: string[]
  } & OfOrganization)[]
  clients?: SeedClient[]
  identity_providers?: object[]
}

export type BadTokenName =
  | 'expired'
  | 'not-yet-valid'
  | 'wrong-iss'
  | 'wrong-aud'
  | 'wrong-signature'
  | 'unknown-kid'
  | 'alg-none'
  | 'hs256-with-public-key'
  | 'id-token'
  | 'missing-claim'
  | 'tampered'

export interface MintOptions extends OfOrganization {
  /** User name, e-mail address or id. One that is not known is made up; without any the token is the client's own. */
  user?: string
  /** What the token is for (`aud`). Default: the confidential client. */
  client_id?: string
  /** Separated by blanks. Default: all that the client may have. */
  scope?: string
  /** In the place of the user's. */
  roles?: string[]
  /** Over all others; null leaves a claim out. */
  claims?: Record<string, unknown>
  /** Seconds. */
  expires_in?: number
  kind?: 'access_token' | 'id_token'
  /** A token that has to be refused, by what is wrong with it. */
  bad?: BadTokenName
}

export interface Minted {
  token: string
  claims: Record<string, unknown>
  /** Seconds. */
  expires_in: number
}

/** Exactly one of `status` or `error`, `hang`, `reset`, `malformed`; or a `delay` alone. */
export interface Fault {
  /** A path, one that ends in * too, or a short name. */
  endpoint:
    | 'authorize'
    | 'token'
    | 'revoke'
    | 'introspect'
    | 'userinfo'
    | 'logout'
    | 'discovery'
    | 'jwks'
    | `/${string}`
  client_id?: string
  /** So many requests, then no more. */
  times?: number
  /** Milliseconds before anything else happens. */
  delay?: number
  status?: number
  /** An OAuth error. */
  error?: string
  error_description?: string
  /** No answer at all. */
  hang?: true
  /** The connection is cut. */
  reset?: true
  /** JSON that breaks off. */
  malformed?: true
}

export interface KeyState {
  kid: string
  alg: SigningAlg
  /** `next` is published and signs later; `retired` is published and signs no more. */
  state: 'next' | 'signing' | 'retired'
  signs_from: string
  published_until: string | null
}

export interface User {
  id: string
  username: string
  email: string
  first_name: string
  last_name: string
  enabled: boolean
  email_verified: boolean
  organization_id: string
  roles: string[]
  attributes: Record<string, unknown>
  created_at: string
  updated_at: string
  last_login: string | null
}

export interface ReceivedRequest {
  at: string
  method: string
  path: string
  client_id: string | null
  /** Of the query and of a form. */
  parameters: Record<string, string>
  status: number
}

export interface IssuedToken {
  at: string
  client_id: string | null
  /** The grant, or `mint`. */
  grant_type: string
  kind: 'access_token' | 'id_token' | 'refresh_token'
  token: string
  /** Of a JWT. */
  claims?: Record<string, unknown>
}

export interface AuditEvent {
  id: string
  type: string
  actor_id: string | null
  actor_email: string | null
  target_id: string
  target_type: string
  organization_id: string
  ip_address: string
  user_agent: string
  timestamp: string
  metadata: Record<string, unknown>
}

interface EventFilter extends OfOrganization {
  type?: string
  /** The `seq` of the last one that is known. */
  after?: number
}

/** The test controls of a development server. Every call throws when the server refuses, with what it says. */
export interface Controls {
  /** A token for a seeded or made-up user, or without one for the client itself; any claims. */
  mint(options?: MintOptions): Promise<Minted>
  users: {
    list(options?: OfOrganization): Promise<User[]>
    /** Creates or, by user name or id, changes. */
    put(...users: SeedUser[]): Promise<void>
    remove(user: string, options?: OfOrganization): Promise<void>
  }
  mfa: {
    /** Gives the user an app that shows codes; the secret in base32. */
    enrol(user: string, options?: OfOrganization): Promise<string>
    /** What the user's app shows now. */
    code(user: string, options?: OfOrganization): Promise<string>
  }
  /** Makes and changes anything that a seed can say. */
  seed(seed: Seed): Promise<void>
  /** Back to the seed: the whole server, or one organization (slug) while others go on. Keys survive. */
  reset(options?: OfOrganization): Promise<void>
  clock: {
    now(): Promise<Date>
    freeze(): Promise<void>
    set(time: Date | string | number): Promise<void>
    /** Milliseconds. */
    advance(ms: number): Promise<void>
    reset(): Promise<void>
  }
  keys: {
    list(): Promise<KeyState[]>
    /** The next key is in the key set and signs a quarter of an hour later, or when it is activated. */
    publish(alg: SigningAlg): Promise<KeyState[]>
    activate(kid: string): Promise<KeyState[]>
    retire(kid: string): Promise<KeyState[]>
    revoke(kid: string): Promise<KeyState[]>
    /** A private JWK signs from now on. */
    pin(jwk: JsonWebKey): Promise<KeyState[]>
  }
  faults: {
    add(fault: Fault): Promise<void>
    clear(): Promise<void>
  }
  /** What came in: newest last. */
  requests(filter?: { client_id?: string; path?: string }): Promise<ReceivedRequest[]>
  /** What was issued: newest last. */
  tokens(filter?: { client_id?: string }): Promise<IssuedToken[]>
  events: {
    list(filter?: EventFilter): Promise<(AuditEvent & { seq: number })[]>
    /** Each event once it is written, from those that are there on. */
    stream(filter?: EventFilter): AsyncGenerator<AuditEvent>
  }
}

/** A running server and its controls. */
export interface Gatehouse extends Controls {
  /** The issuer. */
  url: string
  /** The client for whom tokens are minted unless another is named. */
  client_id: string
  client_secret: string | null
  /** The certificate to trust, with TLS. */
  ca_file: string | null
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface GatehouseOptions {
  /**
   * What the server has at first and after each reset. Default: the users alice and admin, a public and a confidential
   * client.
   */
  seed?: Seed
  /** Default: any free one. */
  port?: number
  /** Issuer. Default `http://localhost:<port>`. */
  url?: string
  /** Where other servers reach this one, when that is not the issuer (containers). */
  internal_url?: string
  /** https with a certificate made for this run. */
  tls?: boolean
  /** A `login_hint` logs in at once. */
  auto_login?: boolean
}
