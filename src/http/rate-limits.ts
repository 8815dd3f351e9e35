import type { Core } from '#src/context.ts'
import { retryLater } from '#src/lib/app-error.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { type Allowance, TokenBuckets } from '#src/lib/token-buckets.ts'
import { networkOf } from './network.ts'

/*
 * Fair limits on the work of unauthenticated clients:
 * 1. Each network and each known browser pays from its own bucket, so no network can use up the budget of
 *    another network.
 * 2. Beyond its first `reserved` units a network also pays from the organization's bucket, which is ten times
 *    as large. Many networks together can empty the bucket of one organization. They cannot empty the bucket
 *    of another organization or the reserve of another network. Only the budgets named `instance` and
 *    `reserves` are shared by all networks and organizations.
 * 3. A client that presents its correct secret pays nothing, so strangers cannot block an application by
 *    using up a budget.
 *
 * Wrong passwords are also counted for each account and network: sign-in/throttle.ts.
 */

interface Budget {
  /** Budget of one network or one known browser. */
  readonly network: Allowance
  /** Units that an IPv4 address or an IPv6 /48 may spend before the organization's bucket is charged too. */
  readonly reserved: number
  /** Budget that all networks share, for work that also needs a total limit. */
  readonly instance?: Allowance
  /**
   * Budget that the reserves of all networks share instead of `instance`. A network's reserve then refills in
   * the same time as this budget. When this budget is used up, the organization and `instance` pay, as for a
   * network without a reserve.
   */
  readonly reserves?: Allowance
}

/** 256 MiB, in units of 1 KiB. An empty bucket refills in 5 minutes. */
const STORED: Allowance = { burst: 256 * 1_024, per_second: (256 * 1_024) / 300 }

/**
 * 1 KiB of a stored cross-site POST. The POST is kept for at most 5 minutes, the time in which a bucket
 * refills. Two dozen networks can use up `instance`, but it takes 1,024 networks to use up `reserves`.
 */
const STORED_POST: Budget = {
  network: { burst: 16 * 1_024, per_second: (16 * 1_024) / 300 },
  reserved: 256,
  instance: STORED,
  reserves: STORED,
}

/*
 * `burst` is enough when everyone in an office or school behind one address signs in at once. `per_second` is
 * enough for the later sign-ins of these people. Work that costs more or stores more (hashes, mail,
 * registrations, log lines) has a smaller budget. `reserved` is enough for a few people, so that a few people
 * of each network can sign in while others attack the organization.
 */
const budgets = {
  /** A password hash. */
  hash: { network: { burst: 300, per_second: 2 }, reserved: 10 },
  /** An RSA signature. */
  signature: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A write to the store. */
  commit: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** The log line and the event of a refused authorization request. */
  refusal: { network: { burst: 60, per_second: 1 / 10 }, reserved: 5 },
  /** A mail to send. */
  mail: { network: { burst: 40, per_second: 40 / 3_600 }, reserved: 3 },
  /** A call to another server. */
  outbound: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** An authorization request that another site posts. */
  stored_post: STORED_POST,
  /** An answer of a provider by POST. */
  stored_answer: STORED_POST,
  /**
   * A stored or renewed registration of a client. The next sweep removes a registration that is still unused
   * after an hour. The instance stores at most 2,000 registrations in an hour: a burst of 1,000, and 1,000
   * per hour. At most about 2,000 unused registrations thus exist.
   */
  registration: {
    network: { burst: 60, per_second: 60 / 3_600 },
    reserved: 5,
    instance: { burst: 1_000, per_second: 1_000 / 3_600 },
  },
  /** A SAML response to parse. */
  xml: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
} satisfies Record<string, Budget>

export type ChargeKind = keyof typeof budgets

/**
 * The budget of an organization, as a multiple of a network's budget. It is enough when ten offices, each
 * with its own network, sign in at the same time.
 */
const ORGANIZATION_FACTOR = 10

/**
 * Maximum number of buckets for each kind of owner. A bucket takes about 150 bytes, so the three kinds take
 * about 25 MB in each process. Beyond the maximum, the least recently used bucket is dropped, so its owner
 * later gets a full bucket. An attacker with tens of thousands of networks thus gets full buckets again and
 * again, and never has to exceed the reserve of a network. The bucket of an organization is in another map
 * and is not refilled in this way, but it limits only the work beyond the reserves. A password check also
 * needs a seat in the hash queue (`fairQueue`). The number of seats is fixed, whatever the number of
 * networks.
 */
const MAX_BUCKETS = 50_000

/**
 * Returns the buckets of one process. The `workers` processes of a copy of the server divide each budget
 * equally. Another copy of the server has full budgets of its own.
 */
export const openCharges = (workers: number): Core['charges'] => ({
  networks: new TokenBuckets(MAX_BUCKETS, workers),
  organizations: new TokenBuckets(MAX_BUCKETS, workers),
  mailboxes: new TokenBuckets(MAX_BUCKETS, workers),
})

type Charged = Pick<Core, 'clock' | 'charges'>

/** Work to charge to a network and an organization. */
export interface Charge {
  ip_address: string
  /**
   * The organization for which the work is done; undefined when the request names no organization, for
   * example when its client is unknown.
   */
  organization_id: OrganizationId | undefined
  kind: ChargeKind
  /** Default 1. */
  units?: number
  /** Units for the budgets that all networks share. Default `units`. */
  shared_units?: number
  /**
   * Hash of the device cookie of a browser in which a user of the organization has signed in. The browser
   * then pays instead of the network and the organization, but not instead of `instance`.
   */
  device?: SecretHash | undefined
}

/**
 * Charges work to the known browser (`device`). Without a known browser, charges the client's network and,
 * beyond the reserve of the network, also the organization. Work with a total limit is charged to `instance`
 * or `reserves` too. Callers charge before they do the work. Budgets are in memory, so a restart allows at
 * most one more burst.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const charge = (
  { clock, charges }: Charged,
  { ip_address, organization_id, kind, units = 1, shared_units = units, device }: Charge,
): void => {
  const { networks, organizations } = charges
  const { network, reserved, instance, reserves }: Budget = budgets[kind]
  const now = clock.now()
  const own = `${kind}:${device ?? networkOf(ip_address)}`
  // The 65,536 networks of an IPv6 /48 share one reserve, because one customer may own all of them.
  const site = `${kind}:reserve:${networkOf(ip_address, 48)}`
  const gain = reserves ? (reserved / reserves.burst) * reserves.per_second : network.per_second
  const reserve = { burst: reserved, per_second: gain }
  const due: Due[] = [[networks, own, network]]
  // The reserve of each worker can hold `held` units, so it admits any charge up to `reserved`.
  const held = Math.min(units, reserved)
  const shared = `${kind}:*:reserve`
  const isReserved =
    !device &&
    networks.left(site, reserve, now, held) >= units &&
    (!reserves || organizations.left(shared, reserves, now, shared_units) >= shared_units)
  if (!device)
    due.push(
      isReserved
        ? [networks, site, reserve]
        : [organizations, `${kind}:${organization_id ?? ''}`, times(network, ORGANIZATION_FACTOR)],
    )
  if (isReserved && reserves) due.push([organizations, shared, reserves, shared_units])
  else if (instance) due.push([organizations, `${kind}:*`, instance, shared_units])
  takeAll(due, units, now, 'Too many requests from this network or for this organization.')
}

/**
 * Limit on metadata documents that are fetched for one person. Each application that the person tries needs
 * one document.
 */
const PER_PERSON: Allowance = { burst: 20, per_second: 60 / 3_600 }
/** Limit on calls to one origin, so that clients cannot use Gatehouse to flood another server. */
const PER_ORIGIN: Allowance = { burst: 30, per_second: 30 / 60 }

const TOO_MANY_DOCUMENTS = 'Too many metadata documents of applications were requested.'

/**
 * Charges the fetch of a metadata document to the person who causes it and to the document's origin. The
 * person can name any number of URLs, of one origin or of many.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const chargeDocument = (
  { clock, charges }: Charged,
  { user_id, origin }: { user_id: UserId; origin: string },
): void =>
  takeAll(
    [
      [charges.networks, `document:${user_id}`, PER_PERSON],
      [charges.organizations, `document:${origin}`, PER_ORIGIN],
    ],
    1,
    clock.now(),
    TOO_MANY_DOCUMENTS,
  )

/**
 * Charges the origin of a metadata document that is read again because of an assertion. If the limit forbids
 * the read, the stored document is used. Key sets have another budget, because no key set is stored.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`
 */
export const chargeReread = (core: Charged, origin: string): void =>
  takeOne(core, `reread:${origin}`, PER_ORIGIN, TOO_MANY_DOCUMENTS)

/**
 * Charges the fetch of a client's key set to the origin of the key set. A fetch is charged to a separate
 * budget when the client's metadata document has the same origin (`isOwn`). Clients with documents of other
 * origins cannot use up that budget.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`
 */
export const chargeKeySet = (core: Charged, { origin, isOwn }: { origin: string; isOwn: boolean }): void =>
  takeOne(core, `keys:${isOwn}:${origin}`, PER_ORIGIN, 'Too many key sets of applications were requested.')

/**
 * Limit on tests of connections to identity providers in one organization. Each test calls other servers at
 * addresses that an administrator chooses.
 */
const CONNECTION_TESTS: Allowance = { burst: 20, per_second: 20 / 600 }

/**
 * Charges an organization for a test of its connection to an identity provider. Each test calls another
 * server a few times.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const chargeConnectionTest = (core: Charged, organization_id: OrganizationId): void =>
  takeOne(
    core,
    `connection-test:${organization_id}`,
    CONNECTION_TESTS,
    'Too many connections were tested in this organization.',
  )

/**
 * Limit on calls to addresses that administrators of one organization choose: reads of the metadata of
 * identity providers, and events that are sent by hand. A call can take 15 seconds, and its answer can take
 * 1 MiB of memory.
 */
const ADMIN_CALLS: Allowance = { burst: 60, per_second: 1 }

/**
 * Charges an organization for a call to an address that one of its administrators chose.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const chargeAdminCall = (core: Charged, organization_id: OrganizationId): void =>
  takeOne(
    core,
    `admin-call:${organization_id}`,
    ADMIN_CALLS,
    'Administrators of this organization caused too many calls to other servers.',
  )

const takeOne = ({ clock, charges }: Charged, key: string, allowance: Allowance, description: string) =>
  takeAll([[charges.organizations, key, allowance]], 1, clock.now(), description)

/** A bucket to charge, and the units if they differ from those of the other buckets. */
export type Due = [buckets: TokenBuckets, key: string, allowance: Allowance, units?: number]

/**
 * Charges all buckets, or none when one of them lacks units.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`
 */
export const takeAll = (due: Due[], units: number, now: number, description: string): void => {
  for (const [buckets, key, allowance, own = units] of due) {
    const wait = buckets.wait(key, allowance, now, own)
    if (wait > 0) throw retryLater('rate_limited', description, wait)
  }
  for (const [buckets, key, allowance, own = units] of due) buckets.take(key, allowance, now, own)
}

const times = ({ burst, per_second }: Allowance, n: number): Allowance => ({
  burst: burst * n,
  per_second: per_second * n,
})
