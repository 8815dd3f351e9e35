import type { Core } from '#src/context.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { mailboxOf } from '#src/lib/email.ts'
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
  /** Of all networks together, where the sum is to be bounded too. */
  readonly instance?: Allowance
}

const budgets = {
  /** A password hash. */
  hash: { network: { burst: 300, per_second: 2 }, reserved: 10 },
  /** An RSA signature. */
  signature: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A write to the store. */
  commit: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A mail that is sent. */
  mail: { network: { burst: 40, per_second: 40 / 3_600 }, reserved: 3 },
  /** A call to another server. */
  outbound: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
  /** A KiB of another site's POST that is kept, for 5 minutes at most: a bucket is full again after as long. */
  parking: {
    network: { burst: 16 * 1_024, per_second: (16 * 1_024) / 300 },
    reserved: 256,
    instance: { burst: 256 * 1_024, per_second: (256 * 1_024) / 300 },
  },
  /** A SAML response that is parsed. */
  xml: { network: { burst: 1_000, per_second: 5 }, reserved: 20 },
} satisfies Record<string, Budget>

export type ChargeKind = keyof typeof budgets

/** How many times a network's allowance the networks of one organization have together. */
const ORGANIZATION = 10

/** Networks, devices and organizations remembered, times the kinds: about 100 bytes each. */
const REMEMBERED = 50_000

/** The buckets of one server. */
export const openCharges = (): Core['charges'] => ({
  networks: new TokenBuckets(REMEMBERED),
  organizations: new TokenBuckets(REMEMBERED),
  mailboxes: new TokenBuckets(REMEMBERED),
})

export interface Charge {
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
  { clock, charges }: Pick<Core, 'clock' | 'charges'>,
  { ip_address, organization_id, kind, units = 1, device }: Charge,
): void => {
  const { networks, organizations } = charges
  const { network, reserved, instance }: Budget = budgets[kind]
  const now = clock.now()
  const own = `${kind}:${device ?? networkOf(ip_address)}`
  const isPastReserve = networks.left(own, network, now) - units < network.burst - reserved
  const due: Due[] = [[networks, own, network]]
  if (isPastReserve && !device)
    due.push([organizations, `${kind}:${organization_id ?? ''}`, times(network, ORGANIZATION)])
  if (instance) due.push([organizations, `${kind}:*`, instance])
  pay(due, units, now, 'Too many requests came from this network, or for this organization.')
}

/** Of the mail that administrators cause: to one mailbox, and of one organization in all. */
const TO_MAILBOX: Allowance = { burst: 6, per_second: 6 / 3_600 }
/** Mails to one mailbox that an organization may cause before the others' mails to it count. */
const RESERVED = 2
const OF_ORGANIZATION: Allowance = { burst: 500, per_second: 500 / 3_600 }

/**
 * Charges a mail that an administrator causes to the organization, to its share of the mailbox and, past a reserve, to the
 * mailbox itself: the administrators of one organization cannot keep those of another from changing a password, which sends a
 * mail too.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; nothing is charged then
 */
export const chargeAdminMail = (
  { clock, charges }: Pick<Core, 'clock' | 'charges'>,
  { email, organization_id }: { email: string; organization_id: OrganizationId },
): void => {
  const { mailboxes, organizations } = charges
  const now = clock.now()
  const mailbox = mailboxOf(email)
  const own = `${organization_id}:${mailbox}`
  const due: Due[] = [
    [mailboxes, own, TO_MAILBOX],
    [organizations, `admin-mail:${organization_id}`, OF_ORGANIZATION],
  ]
  if (mailboxes.left(own, TO_MAILBOX, now) - 1 < TO_MAILBOX.burst - RESERVED)
    due.push([mailboxes, mailbox, TO_MAILBOX])
  pay(due, 1, now, 'Administrators had too many mails sent to this mailbox, or in this organization.')
}

type Due = [buckets: TokenBuckets, key: string, allowance: Allowance]

/** From all of them, or from none. */
const pay = (due: Due[], units: number, now: number, description: string): void => {
  for (const [buckets, key, allowance] of due) {
    const lacking = units - buckets.left(key, allowance, now)
    if (lacking > 0) throw retryLater('rate_limited', description, (lacking / allowance.per_second) * 1000)
  }
  for (const [buckets, key, allowance] of due) buckets.take(key, allowance, now, units)
}

const times = ({ burst, per_second }: Allowance, n: number): Allowance => ({
  burst: burst * n,
  per_second: per_second * n,
})
