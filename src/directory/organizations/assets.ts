import { createHash } from 'node:crypto'
import type { Core } from '#src/context.ts'
import type { Detail } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { type AssetType, assetAnswer, SANDBOX_HEADERS } from '#src/pages/assets.ts'
import { pictureUri, readPicture } from '#src/pages/picture.ts'
import type { Queries } from '#src/storage/store.ts'
import { isAddress } from './address.ts'
import { type Asset, assetAddress, findAsset, readAsset } from './asset-store.ts'
import type { Settings } from './schema.ts'

/**
 * Settings too large to be read with each organization: they are stored by their hash, and the setting holds
 * their URL.
 */
const KINDS = ['logo', 'logo_dark', 'custom_css'] as const
type Kind = (typeof KINDS)[number]

const assetOf = (organization_id: OrganizationId, kind: Kind, value: string): Asset => {
  const read = kind === 'custom_css' ? { type: 'css', bytes: Buffer.from(value) } : readPicture(value)
  if (typeof read === 'string') throw new Error(`${kind}: the schema lets no such picture through`)
  const { type, bytes } = read
  const hash = createHash('sha256').update(`${type}\n`).update(bytes).digest('hex').slice(0, 32)
  return { organization_id, hash, type, body: bytes }
}

/** Returns the URLs of all assets in the settings. */
export const addressesIn = (settings: Settings): string[] => KINDS.flatMap(kind => settings[kind] ?? [])

/**
 * Separates assets from the settings to store. A setting may be sent back as its own URL.
 *
 * @throws AppError 422 for any other URL
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
    if (isAddress(value)) {
      if (value !== stored[kind]) problems.push(notItsOwn(kind))
      continue
    }
    const asset = assetOf(organization_id, kind, value)
    assets.push(asset)
    settings[kind] = assetAddress(asset)
  }
  return { settings, assets, problems }
}

const notItsOwn = (kind: Kind): Detail => ({
  field: `settings.${kind}`,
  code: 'unknown_address',
  message: 'Not the URL of the current value: send the content itself.',
})

/** Returns the settings with contents in place of URLs, for another instance. */
export const withContents = async (q: Queries, settings: Settings): Promise<Settings> => {
  const whole = { ...settings }
  for (const kind of KINDS) {
    const asset = await readAsset(q, settings[kind] ?? '')
    if (asset)
      whole[kind] = asset.type === 'css' ? asset.body.toString() : pictureUri({ ...asset, bytes: asset.body })
  }
  return whole
}

/** Returns the response for the URL of an organization's asset; undefined when it does not exist. */
export const organizationAsset = async ({ store }: Core, pathname: string): Promise<Response | undefined> => {
  const asset = isAddress(pathname) ? await findAsset(store, pathname) : undefined
  return asset && assetAnswer(new Uint8Array(asset.body), asset.type as AssetType, SANDBOX_HEADERS)
}
