import { createHash } from 'node:crypto'
import type { Core } from '#src/context.ts'
import type { Detail } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { type AssetType, assetAnswer, SANDBOX_HEADERS } from '#src/pages/asset-answer.ts'
import { pictureUri, readPicture } from '#src/pages/picture.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { isAssetAddress } from './asset-address.ts'
import { type Asset, assetAddress, clientLogos, findAsset, readAsset, removeAssets } from './asset-store.ts'
import type { Settings } from './schema.ts'
import { readOrganization } from './store.ts'

/**
 * Settings that are too large to be read with each organization. The contents are stored separately, and the
 * organization's settings contain only the URLs.
 */
const KINDS = ['logo', 'logo_dark', 'custom_css'] as const
type Kind = (typeof KINDS)[number]

const assetOf = (organization_id: OrganizationId, kind: Kind, value: string): Asset => {
  const read = kind === 'custom_css' ? { type: 'css', bytes: Buffer.from(value) } : readPicture(value)
  if (typeof read === 'string') throw new Error(`${kind}: the schema must refuse this picture`)
  const { type, bytes } = read
  const hash = createHash('sha256').update(`${type}\n`).update(bytes).digest('hex').slice(0, 32)
  return { organization_id, hash, type, body: bytes }
}

/** Returns the URLs of all assets in the settings. */
const addressesIn = (settings: Settings): string[] => KINDS.flatMap(kind => settings[kind] ?? [])

/**
 * Replaces the contents in sent settings by URLs, and returns the new assets. A caller may send the stored
 * URL of a setting instead of its content. Any other URL is a problem.
 */
export const takeAssets = (
  organization_id: OrganizationId,
  stored: Settings,
  given: Settings,
): { settings: Settings; assets: Asset[]; problems: Detail[] } => {
  const settings = { ...given }
  const assets: Asset[] = []
  const problems: Detail[] = []
  for (const kind of KINDS) {
    const value = given[kind]
    if (!value) continue
    const taken = takeAsset(organization_id, kind, value, stored[kind])
    settings[kind] = taken.address
    assets.push(...taken.assets)
    problems.push(...taken.problems.map(problem => ({ ...problem, field: `settings.${kind}` })))
  }
  return { settings, assets, problems }
}

/**
 * Returns the URL to store for a picture or stylesheet, and the new asset if there is one. `value` is the
 * content, or the URL in `stored` if the caller sends this URL back. Any other URL is a problem, because the
 * content at that URL may have been removed. The problem has the kind as its `field`.
 */
export const takeAsset = (
  organization_id: OrganizationId,
  kind: Kind,
  value: string,
  stored: string | null | undefined,
): { address: string; assets: Asset[]; problems: Detail[] } => {
  if (!isAssetAddress(value)) {
    const asset = assetOf(organization_id, kind, value)
    return { address: assetAddress(asset), assets: [asset], problems: [] }
  }
  const message = 'This is not the URL of the current value. Send the content itself.'
  const problems = value === stored ? [] : [{ field: kind, code: 'unknown_address', message }]
  return { address: value, assets: [], problems }
}

/** Removes the assets that neither the settings of an organization nor the logos of its clients use. */
export const removeUnusedAssets = async (tx: Transaction, organization_id: OrganizationId): Promise<void> => {
  const organization = await readOrganization(tx, organization_id)
  const logos = await clientLogos(tx, organization_id)
  await removeAssets(tx, organization_id, [...addressesIn(organization?.settings ?? {}), ...logos])
}

/**
 * Returns the settings with the contents of assets in place of the URLs, so that another instance can import
 * them.
 */
export const withContents = async (q: Queries, settings: Settings): Promise<Settings> => {
  const whole = { ...settings }
  for (const kind of KINDS) whole[kind] = (await contentOf(q, settings[kind])) ?? settings[kind]
  return whole
}

/** Returns the content at the URL of an asset: the text of a stylesheet, or a picture as a data URI. */
export const contentOf = async (
  q: Queries,
  address: string | null | undefined,
): Promise<string | undefined> => {
  const asset = await readAsset(q, address ?? '')
  return asset?.type === 'css' ? asset.body.toString() : asset && pictureUri({ ...asset, bytes: asset.body })
}

/**
 * Returns the response for the URL of an organization's asset. Returns undefined when the asset does not
 * exist.
 */
export const organizationAsset = async ({ store }: Core, pathname: string): Promise<Response | undefined> => {
  const asset = isAssetAddress(pathname) ? await findAsset(store, pathname) : undefined
  return asset && assetAnswer(new Uint8Array(asset.body), asset.type as AssetType, SANDBOX_HEADERS)
}
