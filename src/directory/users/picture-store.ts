import { and, eq, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import { notPurged } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

type PictureRow = Tables['pictures']['$inferSelect']

const selectPicture = prepared((q, { pictures: t }) =>
  q
    .select()
    .from(t)
    .where(
      and(
        eq(t.hash, sql.placeholder('hash')),
        eq(t.type, sql.placeholder('type')),
        notPurged(q, t.organization_id, t.user_id),
      ),
    ),
)

/** Returns a picture by its hash and type. */
export const findPicture = async (
  q: Queries,
  key: Pick<PictureRow, 'hash' | 'type'>,
): Promise<PictureRow | undefined> => (await selectPicture(q, key))[0]

/** Replaces the picture of a user. */
export const replacePicture = async (tx: Transaction, picture: PictureRow): Promise<void> => {
  await removePicture(tx, picture.user_id)
  await tx.insert(tx.tables.pictures).values(picture)
}

/** Removes the picture of a user. */
export const removePicture = async (tx: Transaction, user_id: UserId): Promise<void> => {
  const { pictures: t } = tx.tables
  await tx.delete(t).where(eq(t.user_id, user_id))
}
