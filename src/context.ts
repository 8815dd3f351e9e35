import type { Logger } from 'pino'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import type { Config } from './config.ts'
import type { FairQueue } from './lib/fair-queue.ts'
import type { OrganizationId } from './lib/ids.ts'
import type { MasterKey } from './lib/master-key.ts'
import type { Permission } from './lib/permission.ts'
import type { TokenBuckets } from './lib/token-buckets.ts'
import type { JobInput, JobKind, JobOutput } from './protocol/saml/jobs.ts'
import type { Queries, Store } from './storage/store.ts'

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
  /** Permissions of the user or client that the token's scopes exclude. */
  withheld: ReadonlySet<Permission>
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
    /** Of the answer's body, at most; default 1 MiB. */
    bytes?: number
  },
) => Promise<Response>

/** Parses XML of other parties in a separate process (directory/identity-providers/xml-reader). */
export interface XmlReader {
  /**
   * Runs a job in the organization's queue.
   *
   * @param ip_address of the client, for messages from unauthenticated clients: its network has a share of the queue
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

export interface PublishedKeys {
  body: string
  etag: string
}

/** `at+jwt` marks access tokens (RFC 9068 section 2.1). */
export type TokenType = 'at+jwt' | 'JWT'

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

/** A mail as it goes out. */
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

/** What the services work with: a command or a seed has it without a server. */
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
  /** What is left of the work that clients may cause before they have proven anything (http/charge). */
  readonly charges: Readonly<Record<'networks' | 'organizations' | 'mailboxes', TokenBuckets>>
  /** Where password hashes wait for their turn (directory/users/password). */
  readonly hashes: FairQueue
  /** How many attempts at a password run, by the budget that pays for them (sign-in/password). */
  readonly attempts: Map<string, number>
  /** Runs the work as a part of the request's trace, if there is one. Names are ours: they leave the house. */
  trace<T>(name: string, work: () => T): T
}

/** The signing keys in memory. */
export interface Keys {
  /** A compact JWS over the claims. */
  sign(claims: Record<string, unknown>, alg: SigningAlg, typ: TokenType): string | Promise<string>
  /** What a JWT says whose header and signature are ours; undefined for any other. Its claims are not judged. */
  open(token: string): Promise<OpenedToken | undefined>
  /** The key set, once the keys of a first start are made. */
  published(): Promise<PublishedKeys>
}

/** What issues tokens. */
export interface Issuer extends Core {
  readonly keys: Keys
}

/** One server. `createApp` makes what it adds to the core, so that no import runs up the order of rooms. */
export interface Context extends Issuer {
  /** Who calls the admin API; throws 401 `invalid_token`. */
  authenticate(request: Request): Promise<Caller>
  /** Whether this client registers this web origin. */
  allowsOrigin(client_id: string, origin: string): Promise<boolean>
  /** What development mode shows in the place of the login form, if anything. */
  loginPage?(step: LoginStep): Promise<Response | undefined>
}
