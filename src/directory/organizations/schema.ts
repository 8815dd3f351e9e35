import { z } from 'zod'
import { count, flag, integer, line, set, time } from '#src/directory/fields.ts'
import { listOf, listQuery } from '#src/http/list.ts'
import { DAY, MINUTE, parseDuration } from '#src/lib/duration.ts'
import { canonicalDomain } from '#src/lib/email.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso, isPlain } from '#src/lib/text.ts'
import { PICTURE_LIMIT, PIXEL_LIMIT, type PictureFault, readPicture } from '#src/pages/picture.ts'
import { THEME_NAME } from '#src/pages/themes.ts'
import type { Tables } from '#src/storage/tables.ts'
import { isAddress, STYLE_LIMIT } from './address.ts'

const reserved = new Set(['admin', 'api', 'oauth', 'saml', 'account'])

const slug = z
  .string('A slug of 3 to 64 characters.')
  .regex(
    /^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$/,
    '3 to 64 lower-case letters, digits and hyphens, no hyphen at the ends.',
  )
  .refine(text => !reserved.has(text) && !looksLikeId(text), 'This slug is reserved.')

const session_ttl = z.string('A duration such as 12h or 7d.').refine(text => {
  const ms = parseDuration(text)
  return ms !== undefined && ms >= 5 * MINUTE && ms <= 365 * DAY
}, 'A whole number and m, h, d or w, from 5m to 365d, such as 12h or 7d.')

const domain = z
  .string('A domain such as example.com.')
  .refine(text => canonicalDomain(text) !== undefined, 'A domain such as example.com, without wildcard.')

const THEME =
  'default, graphite, evergreen, ember, or NAME for themes/NAME.css in the data directory (1 to 64 lower-case letters, digits and hyphens); any other is default.'
const theme = z.string(THEME).regex(THEME_NAME, THEME).meta({ description: THEME })

const PICTURE = `A PNG, SVG, WebP or JPEG picture of at most ${PICTURE_LIMIT / 1024} KiB, ${PIXEL_LIMIT} pixels wide and high, as a data URI, such as data:image/png;base64,iVBOR…; none is fetched from elsewhere.`

const faults: Record<PictureFault, string> = {
  form: PICTURE,
  bytes: `The picture is larger than ${PICTURE_LIMIT / 1024} KiB.`,
  content: 'The bytes are not a picture of the type that the data URI names.',
  pixels: `The picture is wider or higher than ${PIXEL_LIMIT} pixels.`,
}

const picture = z
  .string(PICTURE)
  .superRefine((text, issues) => {
    const read = isAddress(text) || readPicture(text)
    if (typeof read === 'string') issues.addIssue({ code: 'custom', message: faults[read] })
  })
  .meta({ description: PICTURE })

const COLOR = 'A colour of six hexadecimal digits, such as #2b50d8.'
const color = z
  .string(COLOR)
  .regex(/^#[0-9a-fA-F]{6}$/, COLOR)
  .overwrite(text => text.toLowerCase())

const STYLE = `CSS of at most ${STYLE_LIMIT / 1024} KiB; it can load nothing from other servers.`
const style = z
  .string(STYLE)
  .overwrite(text => text.replaceAll('\r\n', '\n'))
  .refine(text => text.trim() !== '', 'Empty: null takes the CSS away.')
  .refine(text => isPlain(text), 'CSS without control characters.')
  .refine(text => Buffer.byteLength(text) <= STYLE_LIMIT, STYLE)
  .meta({ description: STYLE })

const nullable = <T extends z.ZodType>(schema: T) => schema.nullable().optional()

/** Partial settings, as stored and as sent. In a PUT, null resets a setting to its default. */
export const Settings = z.strictObject(
  {
    theme: nullable(theme),
    session_ttl: nullable(session_ttl),
    mfa_required: nullable(flag),
    /** True when users may delete their own account. */
    self_deletion: nullable(flag),
    /** Stored apart from the other settings (assets.ts); answers contain their URLs. */
    logo: nullable(picture),
    logo_dark: nullable(picture),
    accent_color: nullable(color),
    custom_css: nullable(style),
    allowed_domains: nullable(set(domain, 100)),
    password_policy: nullable(
      z.strictObject(
        {
          min_length: nullable(integer(1, 256)),
          require_uppercase: nullable(flag),
          require_lowercase: nullable(flag),
          require_digit: nullable(flag),
          require_special: nullable(flag),
          refuse_common: nullable(flag),
          max_age_days: nullable(integer(1, 3650)),
        },
        'An object of password rules.',
      ),
    ),
  },
  'An object of settings.',
)
export type Settings = z.output<typeof Settings>

export const writable = {
  name: line(128, 1),
  slug,
  display_name: line(128, 1),
  settings: Settings,
}

export const CreateOrganization = z.strictObject({
  ...writable,
  display_name: writable.display_name.optional(),
  settings: Settings.default({}),
})
export type CreateOrganization = z.output<typeof CreateOrganization>

export const UpdateOrganization = z.strictObject({
  ...z.object(writable).partial().shape,
  id: z.string().optional(),
  user_count: count.optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
})
export type UpdateOrganization = z.output<typeof UpdateOrganization>

/** Without `user_count`, which lists alone show. */
export const OrganizationAnswer = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  display_name: z.string(),
  settings: Settings,
  created_at: time,
  updated_at: time,
})

const ListedOrganization = OrganizationAnswer.extend({ user_count: count })

type Row = Tables['organizations']['$inferSelect']

export const organizationAnswer = (organization: Row): z.output<typeof OrganizationAnswer> => ({
  id: organization.id,
  name: organization.name,
  slug: organization.slug,
  display_name: organization.display_name,
  settings: organization.settings,
  created_at: iso(organization.created_at),
  updated_at: iso(organization.updated_at),
})

export const organizationItem = (organization: Row): z.output<typeof ListedOrganization> => ({
  ...organizationAnswer(organization),
  user_count: organization.user_count,
})

export const ListOrganizations = listQuery({ search: line(256).optional() })
export type ListOrganizations = z.output<typeof ListOrganizations>

export const OrganizationList = listOf(ListedOrganization)
