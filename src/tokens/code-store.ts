import { eq, sql } from 'drizzle-orm'
import type { Core } from '#src/context.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import { type AuthorizationCode, openCode, type StoredCode } from './codes.ts'

/** Stores a code whose content is too long for a URL. */
export const storeCode = async (tx: Transaction, code: StoredCode): Promise<void> => {
  await tx.later(tx.insert(tx.tables.authorization_codes).values(code))
}

const selectCode = prepared((q, { authorization_codes: t }) =>
  q
    .select({ sealed: t.sealed })
    .from(t)
    .where(eq(t.code_hash, sql.placeholder('code_hash'))),
)

/**
 * Returns the code if it was issued to this client. A code that contains its own data is returned even if it
 * was made unusable; `findSubject` detects such a code. Returns `burnt` for any other code that was made
 * unusable, even for a code of another client. Returns undefined for any other text.
 */
export const findCode = (
  context: Core,
  q: Queries,
  { code, client_id }: { code: string; client_id: string },
): Promise<AuthorizationCode | 'burnt' | undefined> => {
  const opened = openCode(context, code, client_id)
  if (opened) return Promise.resolve(opened)
  return selectCode(q, { code_hash: hashSecret(code) }).then(([row]) => {
    if (row?.sealed === null) return 'burnt'
    return row && openCode(context, row.sealed, client_id)
  })
}

/**
 * Makes a code unusable before it expires. Stores a row without content, because most codes have no row that
 * could be deleted.
 */
export const burnCode = async (
  tx: Transaction,
  code: string,
  { expires_at }: Pick<AuthorizationCode, 'expires_at'>,
): Promise<void> => {
  const { authorization_codes: t } = tx.tables
  const burnt = { sealed: null, expires_at }
  await tx
    .insert(t)
    .values({ code_hash: hashSecret(code), ...burnt })
    .onConflictDoUpdate({ target: t.code_hash, set: burnt })
}
