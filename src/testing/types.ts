/**
 * Public interface of the testing package. It imports nothing, so that it can be published;
 * test/testing/types.test.ts checks it against the server's own types. Over 300 lines on purpose: the whole
 * interface is one page.
 */

/** Signature algorithms of access and ID tokens: https://www.rfc-editor.org/rfc/rfc7518#section-3.1 */
export type SigningAlg = 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'ES512'

interface OfOrganization {
  /** Slug of the organization. Default: `default`. */
  organization?: string
}

interface OfAnyOrganization {
  /** Slug of an organization. Default: all organizations. */
  organization?: string
}

/** A user of a seed. */
export interface SeedUser extends OfOrganization {
  /** `usr_` and a UUID. The `sub` of tokens is the UUID alone. */
  id?: `usr_${string}`
  username: string
  email: string
  first_name?: string
  last_name?: string
  enabled?: boolean
  email_verified?: boolean
  /** False when the user may not sign in with a code by mail. Default: true. */
  email_code?: boolean
  /** Names of roles. Default: `user`. */
  roles?: string[]
  attributes?: Record<string, unknown>
  /**
   * For new users only; the password of an existing user stays. `{ env }` names an environment variable. Only
   * the seed of a server in a process of its own may use it.
   */
  password?: string | { env: string }
  /** A PHC string of argon2, or a bcrypt hash; for new users only, instead of a password. */
  password_hash?: string
  /** True when a new user must replace the password at the next login. Default: false. */
  password_temporary?: boolean
  /** A picture as a data URI; null removes it. */
  picture?: string | null
  /** For new users only, instead of a password: mails a link with which the user chooses a password. */
  invite?: 'mail'
}

/** A client of a seed. */
export interface SeedClient extends OfOrganization {
  client_id: string
  type: 'confidential' | 'public'
  grant_types: ('authorization_code' | 'refresh_token' | 'client_credentials')[]
  scopes: string[]
  /** Default: null, which means that no kind was chosen. */
  kind?: 'web' | 'spa' | 'native' | 'service' | null
  /** Required for a new confidential client. `{ env }` as for the password of a user. */
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
  id_token_on_refresh?: boolean
  /** Names of roles and groups. If there are any, only people with one of them may use the client. */
  allowed_roles?: string[]
  allowed_groups?: string[]
  /**
   * Further claims of tokens and userinfo. Maps the name of each claim to the path of its value, and
   * optionally to the scope that a token needs for the claim.
   */
  claims?: Record<string, string | { from: string; scope: string }>
  attributes?: Record<string, unknown>
  /** A picture as a data URI. */
  logo?: string | null
  client_uri?: string | null
  policy_uri?: string | null
  tos_uri?: string | null
  initiate_login_uri?: string | null
  backchannel_logout_uri?: string | null
  backchannel_logout_session_required?: boolean
  backchannel_logout_on_expiry?: boolean
}

/**
 * Initial data of a server. `gatehouse openapi --seed-schema` prints the complete schema, with APIs, identity
 * providers and webhooks.
 */
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
  apis?: object[]
  identity_providers?: object[]
  webhooks?: object[]
}

/** Name of an invalid token that the server mints for tests. */
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

/** The user, client and claims of a minted token. */
export interface MintOptions extends OfOrganization {
  /**
   * User name, e-mail address or id. The server makes up a user if the name is unknown. Without `user`, the
   * token is for the client itself.
   */
  user?: string
  /**
   * Client of the token (`aud`). Default: the client of `gatehouse exec --client`, else the first
   * confidential client, else the first client.
   */
  client_id?: string
  /** Scopes, separated by spaces; default: all scopes of the client. */
  scope?: string
  /** Roles in an access token, in place of those of the user. */
  roles?: string[]
  /** Claims to add to the token. They replace the token's own claims; null removes a claim. */
  claims?: Record<string, unknown>
  /** Seconds, at most a year. Default: the client's `access_token_ttl`. */
  expires_in?: number
  /** Default: `access_token`. */
  kind?: 'access_token' | 'id_token'
  /** Makes the token invalid in the named way, so that a verifier has to refuse it. */
  bad?: BadTokenName
}

/** A minted token and its claims. */
export interface Minted {
  token: string
  claims: Record<string, unknown>
  /** Seconds. */
  expires_in: number
}

/**
 * A fault is an error answer (`status`, `error` or both), `hang`, `reset` or `malformed`. `delay` may be
 * combined with any of these, or be the only fault.
 */
export interface Fault {
  /** Path, path prefix followed by *, or short name of an endpoint. */
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
  /** Limits the fault to requests with this client_id. Default: all requests. */
  client_id?: string
  /** Number of requests that get the fault; default: all until the faults are cleared. */
  times?: number
  /** Milliseconds by which the answer is delayed. */
  delay?: number
  status?: number
  /** OAuth error code. Default: `server_error`. Without `status` the answer has status 400. */
  error?: string
  error_description?: string
  /** Sends no answer. */
  hang?: true
  /** Closes the connection. */
  reset?: true
  /** Sends incomplete JSON. */
  malformed?: true
}

/** A signing key and its state in the rotation. Times are ISO 8601. */
export interface KeyState {
  kid: string
  alg: SigningAlg
  /** A `next` key is published and signs later. A `retired` key is published but no longer signs. */
  state: 'next' | 'signing' | 'retired'
  signs_from: string
  published_until: string | null
}

/** A user as the admin API returns it. Times are ISO 8601. */
export interface User {
  id: string
  username: string
  email: string
  first_name: string
  last_name: string
  enabled: boolean
  email_verified: boolean
  email_code: boolean
  organization_id: string
  roles: string[]
  attributes: Record<string, unknown>
  created_at: string
  updated_at: string
  last_login: string | null
  /** Path of the uploaded picture; absent when the user has none. */
  picture?: string | undefined
}

/** A request that the server received. `at` is ISO 8601. */
export interface ReceivedRequest {
  at: string
  method: string
  path: string
  client_id: string | null
  /** Parameters of the query and the form. */
  parameters: Record<string, string>
  status: number
}

/** A token that the server issued. `at` is ISO 8601. */
export interface IssuedToken {
  at: string
  client_id: string | null
  /** The `grant_type`, or `mint`. */
  grant_type: string
  kind: 'access_token' | 'id_token' | 'refresh_token'
  token: string
  /** Claims of a JWT. */
  claims?: Record<string, unknown>
}

/** An event of the audit log. `timestamp` is ISO 8601. */
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

interface EventFilter extends OfAnyOrganization {
  type?: string
  /** Leaves out the stored events with this or a lower `seq`. */
  after?: number
}

/** Test controls of a development server. A refused call throws an Error with the server's answer. */
export interface Controls {
  /** Mints a token with any claims, for an existing or made-up user, or for the client itself. */
  mint(options?: MintOptions): Promise<Minted>
  users: {
    /** Lists the first 1,000 users that were created. */
    list(options?: OfAnyOrganization): Promise<User[]>
    /** Creates users, and changes those whose user name or id already exists. */
    put(...users: SeedUser[]): Promise<void>
    /** Deletes the user with this user name or e-mail address. */
    remove(user: string, options?: OfOrganization): Promise<void>
  }
  /** `user` is a user name or an e-mail address. */
  mfa: {
    /** Enrols an authenticator app for the user; returns its secret in base32. */
    enrol(user: string, options?: OfOrganization): Promise<string>
    /** Returns the current code of the user's authenticator app. Throws an Error when the user has none. */
    code(user: string, options?: OfOrganization): Promise<string>
  }
  /** Applies a seed. */
  seed(seed: Seed): Promise<void>
  /**
   * Resets the whole server with its clock, faults, records and mail, or the data of one organization, to the
   * seed, and refills all rate limits. Signing keys and settings of the server stay.
   */
  reset(options?: OfAnyOrganization): Promise<void>
  clock: {
    now(): Promise<Date>
    /** Stops the clock at its current time. */
    freeze(): Promise<void>
    /** A number is milliseconds since 1970. A running clock continues from this time. */
    set(time: Date | string | number): Promise<void>
    /** Milliseconds. Services under test keep their own clock. */
    advance(ms: number): Promise<void>
    /** Follows the machine's clock again. */
    reset(): Promise<void>
  }
  keys: {
    list(): Promise<KeyState[]>
    /** Publishes the next key, which signs 15 minutes later or when it is activated. */
    publish(alg: SigningAlg): Promise<KeyState[]>
    /** Makes the key sign from now on. */
    activate(kid: string): Promise<KeyState[]>
    /** Removes a key from the key set. Refused for a key that signs. */
    retire(kid: string): Promise<KeyState[]>
    /** Removes a key from the key set, also one that signs. Another key then signs in its place. */
    revoke(kid: string): Promise<KeyState[]>
    /**
     * Signs the tokens of the key's algorithm with this private JWK from now on. Default of access tokens:
     * ES256; of ID tokens: RS256.
     */
    pin(jwk: object): Promise<KeyState[]>
  }
  faults: {
    add(fault: Fault): Promise<void>
    clear(): Promise<void>
  }
  /** Lists the latest 1,000 requests, newest last. */
  requests(filter?: { client_id?: string; path?: string }): Promise<ReceivedRequest[]>
  /** Lists the latest 1,000 issued tokens, newest last. */
  tokens(filter?: { client_id?: string }): Promise<IssuedToken[]>
  events: {
    /** Lists the latest 1,000 events, or the first 1,000 after `after`, newest last. */
    list(filter?: EventFilter): Promise<(AuditEvent & { seq: number })[]>
    /** Yields the existing events, then each new one when it is written. */
    stream(filter?: EventFilter): AsyncGenerator<AuditEvent>
  }
}

/** A running server and its controls. */
export interface Gatehouse extends Controls {
  /** The issuer. */
  url: string
  /** Client of a minted token when `mint` gets no `client_id`. */
  client_id: string
  /** null for a public client. */
  client_secret: string | null
  /**
   * Password of the users of the default seed. It is random when other machines can reach the server, as in a
   * container or under a public issuer.
   */
  password: string
  /** File of the certificate that clients have to trust; null without `tls`. */
  ca_file: string | null
  /** Stops the server and deletes its store. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Options of `startGatehouse`. All have defaults. */
export interface GatehouseOptions {
  /**
   * Data at the start and after each reset. Default: the users alice and admin, a public and a confidential
   * client.
   */
  seed?: Seed
  /** Default: a free port. */
  port?: number
  /** Issuer. Default: `http://localhost:<port>`, or `https://localhost:<port>` if `tls` is set. */
  url?: string
  /**
   * Address for server-to-server calls, if it is not the issuer. Calls between containers need such an
   * address.
   */
  internal_url?: string
  /** Accepts an issuer whose host is not `localhost`, 127.0.0.1 or ::1, such as the name of a container. */
  public_issuer?: boolean
  /** Serves https with a certificate generated for this run. */
  tls?: boolean
  /** Signs in the user of a `login_hint` at once, without the sign-in page. */
  auto_login?: boolean
}
