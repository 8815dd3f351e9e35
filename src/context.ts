import type { KeyObject } from 'node:crypto'
import type { BlockList } from 'node:net'
import type { Configuration } from 'openid-client'
import type { Logger } from 'pino'
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

/**
 * Source of the current time, in milliseconds since the epoch. Only tests and development mode replace it.
 */
export interface Clock {
  now(): number
}

/** The authenticated caller of the admin API, with its current permissions. */
export interface Caller {
  kind: 'client' | 'user'
  /** `usr_…` or the client_id: the `actor_id` of events. */
  id: string
  email: string | null
  organization_id: OrganizationId
  /** True for callers of the default organization, who act on all organizations. Others act on their own. */
  instance: boolean
  permissions: ReadonlySet<Permission>
  /** Scopes of the token, to tell `insufficient_scope` from `forbidden`. */
  scopes: readonly string[]
  /** Permissions that the user or client has, but the token's scopes do not include. */
  withheld: ReadonlySet<Permission>
  /** False for a user who has to authenticate again before a route marked `fresh` (RFC 9470). */
  is_fresh: boolean
  /**
   * Reloads the caller's permissions inside a write on the caller's behalf.
   *
   * @throws AppError 401 when the token is no longer valid, 403 when the permission for the request is gone
   */
  confirm(q: Queries): Promise<void>
}

/**
 * The organization on whose behalf another server is called; entries of `outbound_allow` are per
 * organization.
 */
export interface CalledFor {
  id: OrganizationId
  slug: string
}

/** Calls another server (http/outbound): like `fetch`, with text, a form or no body. */
export type Outbound = (
  url: string | URL,
  init: {
    organization: CalledFor
    method?: string
    headers?: HeadersInit
    body?: string | URLSearchParams
    signal?: AbortSignal
    /** Maximum size of the answer's body; default 1 MiB. */
    bytes?: number
    /** Milliseconds for the whole call; default 5 seconds. */
    timeout?: number
  },
) => Promise<Response>

/** Parses XML of other parties in a separate process (directory/identity-providers/xml-reader). */
export interface XmlReader {
  /**
   * Runs a job in the organization's queue.
   *
   * @param ip_address of the client, for messages from unauthenticated clients: its network has a share of
   * the queue
   * @throws SamlError for an invalid message, or one that exceeds a limit
   * @throws AppError 503 with `Retry-After` when the queue is full
   */
  run<K extends JobKind>(
    organization_id: string,
    kind: K,
    input: JobInput<K>,
    ip_address?: string,
  ): Promise<JobOutput<K>>
  /** Throws the same 503 before a request uses up a single-use value. */
  check(organization_id: string, ip_address?: string): void
}

/** The public key set as it is served, with its ETag. */
export interface PublishedKeys {
  body: string
  etag: string
}

/** `at+jwt` marks access tokens (RFC 9068 section 2.1), `logout+jwt` logout tokens. */
export type TokenType = 'at+jwt' | 'logout+jwt' | 'JWT'

/** Header values and claims of a token with a valid signature. */
export interface OpenedToken {
  alg: SigningAlg
  typ: TokenType
  claims: Record<string, unknown>
}

/**
 * A login step shown in a browser: the handle of its authorization request and the CSRF token of its form.
 */
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

/** Sends mail by SMTP, or keeps it in development mode and tests. Rejects when the mail was not accepted. */
export interface MailTransport {
  send(mail: Mail): Promise<void>
}

/** Names of the cookies, which depend on the server's own URL (http/cookies). */
export interface CookieNames {
  /** Identifies the logins of this browser; each login sets a new value. */
  readonly login: string
  /** Binds pending authorization requests and single-use links to the browser that opened them. */
  readonly browser: string
  /** Marks a browser in which a user has logged in before. */
  readonly device: string
  /** Marks a browser that spares users the second factor; each choice sets a new value. */
  readonly remembered: string
  /** Keeps the token of an e-mail link while its user signs in. */
  readonly link: string
  /** Keeps the language that a person chose on a page, as a BCP 47 tag. */
  readonly language: string
}

/** The themes of the data directory and the built-in ones (pages/themes). */
export interface Themes {
  /**
   * Returns theme and stylesheets of a theme name. A theme of the data directory is applied over the built-in
   * theme of the same name, or over the default one, so it contains only its changes. An unknown name means
   * the default theme.
   */
  find(name?: string): { theme: string; sheets: string[] }
  /**
   * Returns the response for a stylesheet of the data directory, or for a file in the same folder
   * (`/assets/themes/NAME/FILE`); undefined for any other path.
   */
  asset(pathname: string): Response | undefined
}

/**
 * Returns the place of an IP address as text, '' when unknown. Names missing in the language are in English.
 */
export type Locate = (ip_address: string, locale?: string) => string

/** The MaxMind-format file of the settings (sessions/location). */
export interface Places {
  /** Reads the file at the first call and keeps it in memory. */
  open(): Promise<Locate>
  /** Drops the file from memory; the next `open` reads it again. */
  drop(): void
}

/** Metadata of a client, from its document or from the copy in the executable. */
export interface FoundDocument {
  readonly registration: Registration
  /** True for the copy, which stands in for a document that could not be read. */
  readonly is_copy: boolean
}

/** A metadata document or key set of a client in memory (directory/clients/remote-json). */
export interface KnownJson {
  readonly origin: string
  /** The parsed content; undefined when it could not be read. */
  found: Promise<unknown>
  /** Milliseconds; infinite while it is being read. */
  expires_at: number
  /** Time of the last call, and of the last one that succeeded. */
  asked_at: number
  read_at: number
  /** Headers that ask for the content only if it is newer. */
  validators: Record<string, string>
}

/** Dependencies of the services. Commands and seeds use them without a server. */
export interface Core {
  readonly config: Config
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly fetch: Outbound
  readonly xml: XmlReader
  /** undefined when no mail server is configured; features that require mail are then disabled. */
  readonly mail?: MailTransport | undefined
  readonly master: MasterKey
  readonly cookies: CookieNames
  /** The setting `trusted_proxies`. */
  readonly proxies: BlockList
  readonly themes: Themes
  readonly places: Places
  /** Remaining budget for the work of unauthenticated clients (http/charge). */
  readonly charges: Readonly<Record<'networks' | 'organizations' | 'mailboxes', TokenBuckets>>
  /** Metadata documents and key sets of clients, by kind, organization and URL. */
  readonly documents: Map<string, KnownJson>
  /** Queue of password hashes (directory/users/password). */
  readonly hashes: FairQueue
  /** Number of running password attempts by their throttle budget (sign-in/password). */
  readonly attempts: Map<string, number>
  /** Files of the backups that this server is making (operations/backups). */
  readonly backups: Set<string>
  /** Open streams of the audit log, and the one reader that serves them all (audit/follow). */
  readonly tails: { readonly open: Set<Tail>; reading: Promise<void> | undefined }
  /**
   * Runs work as a span of the request's trace, if the request is traced. Names are constants, since the
   * collector sees them.
   */
  trace<T>(name: string, work: () => T): T
}

/** An open stream of the audit log. */
export interface Tail {
  readonly caller_id: string
  /** Checks the caller, and sends the new events that the stream asked for. */
  look(events: Tables['events']['$inferSelect'][]): Promise<void>
  end(): void
}

/** The signing keys in memory. */
export interface SigningKeys {
  /** Returns a compact JWS of the claims. */
  sign(claims: Record<string, unknown>, alg: SigningAlg, typ: TokenType): string | Promise<string>
  /**
   * Returns the content of a JWT whose header and signature are this server's, or undefined. The claims are
   * not validated.
   */
  open(token: string): Promise<OpenedToken | undefined>
  /** Returns the key set; waits for the first start to create the keys. */
  published(): PublishedKeys | Promise<PublishedKeys>
}

/** Dependencies of code that issues tokens. */
export interface Issuer extends Core {
  readonly keys: SigningKeys
}

/** Key pair of the SAML service provider: signs requests and decrypts responses. */
export interface SamlKey {
  /** Distinguishes the keys of several servers in one process. */
  readonly id: string
  readonly private_key: KeyObject
  /** DER in base64. */
  readonly certificate: string
}

/** Metadata of an upstream provider and the client registered there (federation/social). */
export interface KnownUpstream {
  readonly version: number
  readonly expires_at: number
  readonly configuration: Promise<Configuration>
}

/**
 * Dependencies of one server. `createApp` adds functions here, so that no import runs against the order of
 * rooms.
 */
export interface Context extends Issuer {
  /**
   * Authenticates the caller of the admin API.
   *
   * @throws AppError 401 `invalid_token`
   */
  authenticate(request: Request): Promise<Caller>
  /** Resolves to true when this client has registered this web origin. */
  allowsOrigin(client_id: string, origin: string): Promise<boolean>
  /** Returns the key of the instance; creates it at the first use and keeps it from then on. */
  samlKey(): Promise<SamlKey>
  /** By id of the provider. */
  readonly upstreams: Map<string, KnownUpstream>
  /** Development mode: returns the page to show instead of the login form, or undefined for the form. */
  loginPage?(step: LoginStep): Promise<Response | undefined>
}
