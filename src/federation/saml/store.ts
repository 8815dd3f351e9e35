import type { SecretHash } from '#src/lib/secrets.ts'
import { getSetting, putSetting } from '#src/storage/settings.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Marks an assertion as used; true for exactly one caller. */
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

/** Stored key pair: the private key as sealed PKCS #8 in base64, the certificate as DER in base64. */
export interface StoredKey {
  private_key: string
  certificate: string
}

const NAME = 'saml_key'

export const findSamlKey = (q: Queries): Promise<StoredKey | undefined> => getSetting(q, NAME)

/** Keeps an existing key: another process may have stored one first. */
export const insertSamlKey = async (tx: Transaction, key: StoredKey, now: number): Promise<void> => {
  if (!(await findSamlKey(tx))) await putSetting(tx, NAME, key, now)
}
