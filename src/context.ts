import type { KeyObject } from 'node:crypto'
import type { BlockList } from 'node:net'
import type { Configuration } from 'openid-client'
import type { Logger } from '#src/lib/log.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import type { Config } from './config.ts'
import type { FairQueue } from './lib/fair-queue.ts'
import type { OrganizationId } from './lib/ids.ts'
import type { MasterKey } from './lib/master-key.ts'
import type { Permission } from './lib/permission.ts'
import type { TokenBuckets } from './lib/token-buckets.ts'
import type { Registration } from './protocol/oauth/dynamic-client.ts'
import type { JobInput, JobKind, JobOutput } from './protocol/saml/jobs.ts'
import type { Queries, Store } from './storage/store.ts'
import type { Tables } from './storage/tables.ts'

/** Source of the current time in milliseconds since the epoch. Only tests and development mode replace it. */
export interface Clock {
  now(): number
}

/** The authenticated caller of the admin API, with its current permissions. */
export interface Caller {
  kind: 'client' | 'user'
  /** `usr_…` or the client_id. Events record this id as `actor_id`. */
  id: string
  email: string | null
  organization_id: OrganizationId
  /**
   * True for a caller of the default organization. Such a caller may act on all organizations. Any other
   * caller may act only on its own organization.
   */
  instance: boolean
  permissions: ReadonlySet<Permission>
  /** Scopes of the token. */
  scopes: readonly string[]
  /**
   * Permissions that the caller has, but that the token's scopes do not include. A call that needs one of
   * them gets `insufficient_scope`.
   */
  withheld: ReadonlySet<Permission>
  /** False for a user who has to authenticate again before calling a route with `fresh` (RFC 9470). */
  is_fresh: boolean
  /**
   * Reloads the caller's permissions inside a write, so that a withdrawn permission is no longer used.
   *
   * @throws AppError 401 for an invalid token, 403 when the permission is gone, 404 or 412 for `If-Match`
   */
  confirm(q: Queries): Promise<void>
}

/**
 * Organization on whose behalf another server is called. Each organization has entries of its own in
 * `outbound_allow`.
 */
export interface CalledFor {
  id: OrganizationId
  slug: string
}

/** Calls another server (http/outbound), like `fetch`. The optional body is a text or a form. */
export type Outbound = (
  url: string | URL,
  init: {
    organization: CalledFor
    method?: string
    headers?: HeadersInit
    body?: string | URLSearchParams
    signal?: AbortSignal
    /** Maximum bytes of the answer's body. Default: 1 MiB. */
    bytes?: number
    /** Maximum milliseconds of the whole call. Default: 5 seconds. */
    timeout?: number
  },
) => Promise<Response>

/** Parses XML from other parties in a separate process (directory/identity-providers/xml-reader). */
export interface XmlReader {
  /**
   * Runs a job in the organization's queue.
   *
   * @param ip_address of an unauthenticated client, whose network may fill only a share of the queue
   * @throws SamlError for an invalid message, or one that exceeds a limit
   * @throws AppError 503 with `Retry-After` when the queue is full
   */
  run<K extends JobKind>(
    organization_id: string,
    kind: K,
    input: JobInput<K>,
    ip_address?: string,
  ): Promise<JobOutput<K>>
  /** Throws the 503 of `run` when the queue is full. Callers check before they use up a single-use value. */
  check(organization_id: string, ip_address?: string): void
}

/** The body of the public key set, and its ETag. */
export interface PublishedKeys {
  body: string
  etag: string
}

/** `typ` of a JWT: `at+jwt` marks an access token (RFC 9068 section 2.1), `logout+jwt` a logout token. */
export type TokenType = 'at+jwt' | 'logout+jwt' | 'JWT'

/** Header values and claims of a token with a valid signature. */
export interface OpenedToken {
  alg: SigningAlg
  typ: TokenType
  claims: Record<string, unknown>
}

/** A login step shown in a browser: the handle of its stored request and the CSRF token of its form. */
export interface LoginStep {
  request: Request
  organization_id: OrganizationId
  handle: string
  csrf_token: string
  login_hint: string | undefined
  client_name: string | undefined
}

/** A rendered mail. */
export interface Mail {
  to: string
  subject: string
  text: string
  html: string
}

/** Sends mail by SMTP, or keeps it (development mode, tests). Rejects when the mail was not accepted. */
export interface MailTransport {
  send(mail: Mail): Promise<void>
}

/** Names of the cookies. They depend on the URL of the server (http/cookies). */
export interface CookieNames {
  /** Identifies the logins of this browser. Each login sets a new value. */
  readonly login: string
  /** Binds pending authorization requests and single-use links to the browser that opened them. */
  readonly browser: string
  /** Marks a browser in which a user has signed in before. */
  readonly device: string
  /** Marks a browser in which users chose to skip the second factor. Each choice sets a new value. */
  readonly remembered: string
  /** Keeps the token of an e-mail link while the user of the link signs in. */
  readonly link: string
  /** Keeps the language that a person chose on a page, as a BCP 47 tag. */
  readonly language: string
}

/** The built-in themes and the themes of the data directory (pages/themes). */
export interface Themes {
  /**
   * Returns the built-in theme and the stylesheets to use for a theme name. A theme of the data directory
   * contains changes only. It is applied over the built-in theme of the same name, or over the default theme.
   * An unknown name means the default theme.
   */
  find(name?: string): { theme: string; sheets: string[] }
  /** Returns a file of a theme (`/assets/themes/NAME/FILE`). Returns undefined for any other path. */
  asset(pathname: string): Response | undefined
}

/**
 * Returns the place of an IP address as text. Returns '' when the place is unknown. A place without a name in
 * `locale` gets its English name.
 */
export type Locate = (ip_address: string, locale?: string) => string

/** The file of the setting `geoip_file`, in MaxMind's format (sessions/geoip). */
export interface Places {
  /** Reads the file at the first call and keeps it in memory. */
  open(): Promise<Locate>
  /** Drops the file from memory. The next `open` reads the file again. */
  drop(): void
}

/** Metadata of a client, read from its metadata document or from a copy in the executable. */
export interface FoundDocument {
  readonly registration: Registration
  /** True for the copy in the executable, which is used when the document cannot be read. */
  readonly is_copy: boolean
}

/** A cached metadata document or key set of a client (directory/clients/remote-json). */
export interface KnownJson {
  readonly origin: string
  /** The parsed content of the last successful read. Undefined when no read has succeeded. */
  found: Promise<unknown>
  /** Milliseconds since the epoch. Infinite while the content is being read. */
  expires_at: number
  /** Time of the last call (`read_at`: of the last successful call), and whether the last call failed. */
  asked_at: number
  has_failed: boolean
  read_at: number
  /** Headers of a conditional request, to which the server sends the content only if it has changed. */
  validators: Record<string, string>
}

/** Dependencies of the services. Commands and seeds use them without starting a server. */
export interface Core {
  readonly config: Config
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly fetch: Outbound
  readonly xml: XmlReader
  /** Undefined when `smtp_url` or `mail_from` is not set. Features that need mail are then disabled. */
  readonly mail?: MailTransport | undefined
  readonly master: MasterKey
  readonly cookies: CookieNames
  /** The setting `trusted_proxies`. Undefined when this setting is empty. */
  readonly proxies: BlockList | undefined
  readonly themes: Themes
  readonly places: Places
  /** Remaining budgets for the work of unauthenticated clients (http/rate-limits). */
  readonly charges: Readonly<Record<'networks' | 'organizations' | 'mailboxes', TokenBuckets>>
  /** Cached metadata documents and key sets of clients, by kind, organization and URL. */
  readonly documents: Map<string, KnownJson>
  /** Queue of password hashes (directory/users/password). */
  readonly hashes: FairQueue
  /** Number of running password attempts for each throttle budget (sign-in/password). */
  readonly attempts: Map<string, number>
  /** Files of the backups that this server makes, and the folder while one begins (operations/backups). */
  readonly backups: Set<string>
  /** Open streams of the audit log, and the read that serves all of them (audit/event-streams). */
  readonly tails: { readonly open: Set<Tail>; reading: Promise<void> | undefined }
  /**
   * Runs work as a span of the request's trace when the request is traced. `name` must be a constant, because
   * the collector receives it and must not receive data of a request.
   */
  trace<T>(name: string, work: () => T): T
  /** Postpones work until the commit of a seed (`afterChange`). Undefined when no seed is applied. */
  readonly postpone?: (work: (context: Core) => Promise<unknown>, isRepeated: boolean) => void
}

/** An open stream of the audit log. */
export interface Tail {
  readonly caller_id: string
  readonly organization_id: OrganizationId
  /** Events up to this `seq` are not new to the stream. Infinite until the stream has opened. */
  last: number
  /** Checks the caller of the stream, and sends the messages of new events that match the stream's filter. */
  look(told: readonly { event: Tables['events']['$inferSelect']; message: string }[]): Promise<void>
  end(): void
}

/** The signing keys in memory. */
export interface SigningKeys {
  /** Returns a compact JWS of the claims. */
  sign(claims: Record<string, unknown>, alg: SigningAlg, typ: TokenType): string | Promise<string>
  /**
   * Returns the header and claims of a JWT that this server has signed. Returns undefined for any other JWT.
   * The claims are not validated. With `any`, a JWT is opened even if its key has left the key set.
   */
  open(token: string, by?: 'published' | 'any'): Promise<OpenedToken | undefined>
  /** Returns the key set. During the first start, the call waits until the keys exist. */
  published(): PublishedKeys | Promise<PublishedKeys>
}

/** Dependencies of code that issues tokens. */
export interface Issuer extends Core {
  readonly keys: SigningKeys
}

/** Key pair of the SAML service provider. It signs requests and decrypts responses. */
export interface SamlKey {
  /** Distinguishes the keys of several servers in the same process. */
  readonly id: string
  readonly private_key: KeyObject
  /** DER in base64. */
  readonly certificate: string
}

/** Cached metadata of an upstream provider, and of Gatehouse as its client (federation/social). */
export interface KnownUpstream {
  readonly version: number
  readonly kept: { readonly from: number; readonly until: number }
  readonly configuration: Promise<Configuration>
}

/**
 * Dependencies of one server. `createApp` adds the members below. Rooms (src/README.md) use them through the
 * context, because importing them would break the order of the rooms.
 */
export interface Context extends Issuer {
  /**
   * Authenticates the caller of the admin API.
   *
   * @throws AppError 401 without a valid token, 400 when a token is sent in two ways
   */
  authenticate(request: Request): Promise<Caller>
  /** Resolves to true when this client has registered this web origin. */
  allowsOrigin(client_id: string, origin: string): Promise<boolean>
  /** Returns the SAML key of the instance. The first call creates it. */
  samlKey(): Promise<SamlKey>
  /** Cached upstream providers, by id. */
  readonly upstreams: Map<string, KnownUpstream>
  /** Development mode: returns the page to show instead of the login form, or undefined for the form. */
  loginPage?(step: LoginStep): Promise<Response | undefined>
}
