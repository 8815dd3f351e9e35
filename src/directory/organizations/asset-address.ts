/**
 * Maximum bytes of an organization's CSS. The built-in stylesheet of all pages has about this size, so 32 KiB
 * can restyle every page. The limit is not higher, because the CSS is kept in memory and delays the first
 * page that a person opens.
 */
export const STYLE_LIMIT = 32 * 1024

const address = /^\/assets\/organizations\/(org_[\w-]{1,64})\/([0-9a-f]{32})\.(png|svg|webp|jpg|css)$/

/**
 * Returns the URL of an organization's picture or stylesheet. The URL contains the hash of the content, so
 * browsers can cache the file without a time limit.
 */
export const addressOf = (organization_id: string, hash: string, type: string): string =>
  `/assets/organizations/${organization_id}/${hash}.${type}`

/** Parses the URL of an asset. Returns undefined for any other text. */
export const readAddress = (
  text: string,
): { organization_id: string; hash: string; type: string } | undefined => {
  const [, organization_id, hash, type] = address.exec(text) ?? []
  return organization_id && hash && type ? { organization_id, hash, type } : undefined
}

/** True for the URL of an asset. */
export const isAssetAddress = (text: string): boolean => address.test(text)
