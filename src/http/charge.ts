import type { Context, Ports } from '#src/context.ts'
import { retryLater } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { type Allowance, TokenBuckets } from '#src/lib/token-buckets.ts'
import { networkOf } from './network.ts'

/*
 * Fairness of the work that clients cause before they have proven anything:
 * 1. Each network pays for it from a bucket of its own, which no other network empties; a known device has a bucket of its own.
 * 2. Past its first `reserved` units a network pays from the organization's bucket too, ten times as large: many networks
 *    together exhaust one organization, never another one, and a network that has its reserve left is served even there.
 * 3. A client that shows its right secret pays nothing.
 */

interface Budget {
  /** Of one network, or one known device. */
  readonly network: Allowance
  /** Units that a network may spend before its organization's bucket is asked. */
  readonly reserved: number
}

const budgets = {
  /** A password hash. */
  hash: { network: { burst: 300, per_second: 2 }, reserved: 10 },
  /** An RSA signature. */
  signature: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A write to the store. */
  commit: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A mail that is sent. */
  mail: { network: { burst: 20, per_second: 20 / 3_600 }, reserved: 3 },
  /** A call to another server. */
  outbound: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A SAML response that is parsed. */
  xml: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
} satisfies Record<string, Budget>

export type ChargeKind = keyof typeof budgets

/** How many times a network's allowance the networks of one organization have together. */
const ORGANIZATION = 10

/** Networks, devices and organizations remembered, times the kinds: about 100 bytes each. */
const REMEMBERED = 50_000

/** The buckets of one server. */
export const openCharges = (): Ports['charges'] => ({
  networks: new TokenBuckets(REMEMBERED),
  organizations: new TokenBuckets(REMEMBERED),
})

interface Charge {
  ip_address: string
  /** The organization that the work is for; undefined where the request names none, such as for an unknown client. */
  organization_id: OrganizationId | undefined
  kind: ChargeKind
  /** 1 unless given. */
  units?: number
  /** The device cookie's hash, once it is known to be one of the organization: pays in the place of network and organization. */
  device?: SecretHash | undefined
}

/**
 * Charges work to the client's network and to the organization, before it is done. Kept in memory: a restart costs at most one
 * more burst.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; nothing is charged then
 */
export const charge = (
  { clock, ports }: Pick<Context, 'clock' | 'ports'>,
  { ip_address, organization_id, kind, units = 1, device }: Charge,
): void => {
  const { networks, organizations } = ports.charges
  const { network, reserved }: Budget = budgets[kind]
  const now = clock.now()
  const own = `${kind}:${device ?? networkOf(ip_address)}`
  const left = networks.left(own, network, now) - units
  if (left < 0) throw refused(-left / network.per_second)
  if (!device && left < network.burst - reserved) {
    const shared = times(network, ORGANIZATION)
    const key = `${kind}:${organization_id ?? ''}`
    const lacking = units - organizations.left(key, shared, now)
    if (lacking > 0) throw refused(lacking / shared.per_second)
    organizations.take(key, shared, now, units)
  }
  networks.take(own, network, now, units)
}

const times = ({ burst, per_second }: Allowance, n: number): Allowance => ({
  burst: burst * n,
  per_second: per_second * n,
})

const refused = (seconds: number) =>
  retryLater(
    'rate_limited',
    'Too many requests came from this network, or for this organization.',
    seconds * 1000,
  )
