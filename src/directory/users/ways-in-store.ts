import { and, eq } from 'drizzle-orm'
import type { FactorId, IdentityProviderId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { listFactors } from './factors/store.ts'
import type { UserRow } from './store.ts'

/**
 * A way for a user to begin a login without an administrator's help. Codes by mail do not count, because the
 * organization may switch them off at any time.
 */
export type WayIn =
  | { by: 'password' }
  /**
   * A passkey that can begin a login without a password. A passkey that was added as a second factor might
   * not be discoverable. Such a passkey does not count before its first login without a password.
   */
  | { by: 'passkey'; factor_id: FactorId }
  /** An account at an enabled provider. */
  | { by: 'provider'; provider_id: IdentityProviderId; subject: string }

/** Returns the user's ways in. */
export const listWaysIn = async (
  q: Queries,
  { id, password_hash }: Pick<UserRow, 'id' | 'password_hash'>,
): Promise<WayIn[]> => {
  const { external_accounts: accounts, identity_providers: providers } = q.tables
  const linked = await q
    .select({ provider_id: accounts.provider_id, subject: accounts.subject })
    .from(accounts)
    .innerJoin(providers, eq(providers.id, accounts.provider_id))
    .where(and(eq(accounts.user_id, id), eq(providers.enabled, true)))
  const passkeys = (await listFactors(q, id)).filter(({ alone }) => alone)
  return [
    ...(password_hash === null ? [] : [{ by: 'password' } as const]),
    ...passkeys.map(({ id: factor_id }) => ({ by: 'passkey', factor_id }) as const),
    ...linked.map(account => ({ by: 'provider', ...account }) as const),
  ]
}

/** True when the user has ways in, and `isGone` is true for all of them. */
export const isOnlyWayIn = (ways: readonly WayIn[], isGone: (way: WayIn) => boolean): boolean =>
  ways.length > 0 && ways.every(isGone)
