import { and, eq, isNotNull, notInArray, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import { cached } from '#src/storage/cache.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { addressOf, readAddress } from './asset-address.ts'

export type Asset = Tables['organization_assets']['$inferSelect']

const { placeholder } = sql

const selectAsset = prepared((q, { organization_assets: t }) =>
  q
    .select()
    .from(t)
    .where(
      and(
        eq(t.organization_id, placeholder('organization_id')),
        eq(t.hash, placeholder('hash')),
        eq(t.type, placeholder('type')),
      ),
    ),
)

/** Reads an asset by its URL. */
export const readAsset = async (q: Queries, address: string): Promise<Asset | undefined> => {
  const named = readAddress(address)
  return named && (await selectAsset(q, named))[0]
}

/**
 * Returns an asset by its URL. Up to 200 assets are cached until a commit changes organizations. An asset has
 * at most 64 KiB, so the cache takes at most 12.5 MiB of memory.
 */
export const findAsset = cached('organizations', readAsset, 200)

/** Inserts assets. Skips assets that are stored already. */
export const insertAssets = async (tx: Transaction, assets: readonly Asset[]): Promise<void> => {
  if (assets.length === 0) return
  await tx
    .insert(tx.tables.organization_assets)
    .values([...assets])
    .onConflictDoNothing()
  tx.changed('organizations')
}

/** Returns the URLs of the logos of an organization's clients. */
export const clientLogos = async (q: Queries, organization_id: OrganizationId): Promise<string[]> => {
  const { clients: t } = q.tables
  const rows = await q
    .select({ logo: t.logo })
    .from(t)
    .where(and(eq(t.organization_id, organization_id), isNotNull(t.logo)))
  return rows.flatMap(({ logo }) => logo ?? [])
}

/** Removes an organization's assets. Assets with the given URLs are kept. */
export const removeAssets = async (
  tx: Transaction,
  organization_id: OrganizationId,
  kept: readonly string[],
): Promise<void> => {
  const { organization_assets: t } = tx.tables
  const hashes = kept.flatMap(address => readAddress(address)?.hash ?? [])
  await tx
    .delete(t)
    .where(
      and(eq(t.organization_id, organization_id), hashes.length > 0 ? notInArray(t.hash, hashes) : undefined),
    )
  tx.changed('organizations')
}

/** Returns the URL of an asset. */
export const assetAddress = ({ organization_id, hash, type }: Asset): string =>
  addressOf(organization_id, hash, type)
