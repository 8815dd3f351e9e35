import { z } from 'zod'
import type { Core } from '#src/context.ts'
import { throwProblems } from '#src/lib/app-error.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Brand } from '#src/pages/data.ts'
import { isAssetAddress } from './asset-address.ts'
import { takeAssets } from './assets.ts'
import { brandOf } from './brand.ts'
import { Settings, writable } from './schema.ts'
import type { Organization } from './store.ts'

/** Label that binds the sealed text to its purpose. */
const LABEL = 'looks'
/** Milliseconds for which a preview can be shown. The console posts the preview into a frame at once. */
const LIFETIME = MINUTE

export const PreviewLooks = z
  .strictObject({
    display_name: writable.display_name.optional().describe('Name that users see.'),
    settings: Settings.pick({
      theme: true,
      accent_color: true,
      logo: true,
      logo_dark: true,
      custom_css: true,
      terms_url: true,
      privacy_url: true,
      support_url: true,
    })
      .meta({ id: 'LooksSettings', description: 'Settings of the appearance; null means the default.' })
      .optional(),
  })
  .meta({
    id: 'PreviewLooks',
    description: 'An appearance that is not saved. Missing fields have their stored values.',
    example: { settings: { accent_color: '#2b50d8' } },
  })
type PreviewLooks = z.output<typeof PreviewLooks>

export const LooksPreview = z
  .object({
    looks: z.string().describe('Sealed appearance; the console posts it to its page `/console/preview`.'),
  })
  .meta({
    id: 'LooksPreview',
    description: "A sealed preview of an organization's appearance, valid for a minute.",
    example: { looks: 'q3l5Xc0e9Rr' },
  })

/** Returns the URL of a stylesheet. For new CSS this is a data URI. */
const sheetOf = (css: string): string =>
  isAssetAddress(css) ? css : `data:text/css;base64,${Buffer.from(css).toBase64()}`

/**
 * Seals an appearance that is not saved. Every process of the server can show the sealed appearance, and none
 * has to store it.
 *
 * @throws AppError 422 when a setting is a URL other than that of the stored picture or stylesheet
 */
export const sealLooks = (
  core: Core,
  organization: Organization,
  { display_name = organization.display_name, settings = {} }: PreviewLooks,
): string => {
  throwProblems(takeAssets(organization.id, organization.settings, settings).problems)
  const { custom_css, ...all } = { ...organization.settings, ...settings }
  const brand = brandOf(core, {
    display_name,
    settings: { ...all, ...(custom_css && { custom_css: sheetOf(custom_css) }) },
  })
  const plain = JSON.stringify({
    brand,
    organization_id: organization.id,
    until: core.clock.now() + LIFETIME,
  })
  return core.master.seal(Buffer.from(plain), LABEL).toString('base64url')
}

/**
 * Returns the appearance in a preview, and the organization of the preview. Returns undefined for an expired
 * preview, and for a text that is not a preview.
 */
export const openLooks = (
  { master, clock }: Core,
  sealed: string,
): { brand: Brand; organization_id: OrganizationId } | undefined => {
  try {
    const { brand, organization_id, until } = JSON.parse(
      master.open(Buffer.from(sealed, 'base64url'), LABEL).toString(),
    )
    return clock.now() < until ? { brand, organization_id } : undefined
  } catch {
    return undefined
  }
}
