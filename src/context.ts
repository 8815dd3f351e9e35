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

/** Milliseconds since the epoch. Tests and dev mode move it; nothing else reads the time. */
export interface Clock {
  now(): number
}

/** Whoever calls the admin API, with the rights of this very moment. */
export interface Caller {
  kind: 'client' | 'user'
  /** `usr_…` or the client_id: the `actor_id` of events. */
  id: string
  email: string | null
  organization_id: OrganizationId
  /** A caller of the default organization acts on the whole instance, any other on its own organization alone. */
  instance: boolean
  permissions: ReadonlySet<Permission>
  /** The scope of the token: tells `insufficient_scope` from `forbidden`. */
  scopes: readonly string[]
  /** Permissions that the person or client would have but for the token's scopes. */
  withheld: ReadonlySet<Permission>
  /**
   * Looks the caller up again and takes over the rights of this moment: part of each write on their behalf. Throws 401 when
   * the token is no longer good, 403 when the permission that let the request in is gone.
   */
  confirm(q: Queries): Promise<void>
}

/** The organization that a call to another server is made for: `outbound_allow` names hosts by organization. */
export interface CalledFor {
  id: OrganizationId
  slug: string
}

/** How we ask other servers (http/outbound): like `fetch`, with a text, a form or nothing as the body. */
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

/** Reads foreign XML outside of this process (directory/identity-providers/xml-reader). */
export interface XmlReader {
  /**
   * Waits in the queue of the organization; rejects with `SamlError`, also when the message costs too much.
   *
   * @param ip_address of the client, for a message that anybody can send: its network has a share of the queue
   * @throws AppError 503 with `Retry-After` when the queue is full
   */
  run<K extends JobKind>(
    organization_id: string,
    kind: K,
    input: JobInput<K>,
    ip_address?: string,
  ): Promise<JobOutput<K>>
  /** The same 503, before a request uses something up. */
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

/** A login that a browser has come to: the handle of its request, and the token of its form. */
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

/** Takes mail: an SMTP server, or whatever keeps it for development and tests. Rejects when it could not be handed over. */
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
  /** Absent where no mail server is configured: whatever needs mail is then not offered. */
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
