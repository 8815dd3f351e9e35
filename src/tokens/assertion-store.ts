import type { SecretHash } from '#src/lib/secrets.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Marks an assertion of a provider or client as used. Returns true for the first call only, because an
 * attacker could present an intercepted assertion again.
 */
export const useAssertion = async (
  tx: Transaction,
  assertion: { assertion_hash: SecretHash; expires_at: number },
): Promise<boolean> => {
  const { used_assertions: t } = tx.tables
  const rows = await tx
    .insert(t)
    .values(assertion)
    .onConflictDoNothing()
    .returning({ hash: t.assertion_hash })
  return rows.length > 0
}
