import { z } from 'zod'
import {
  count,
  flag,
  integer,
  line,
  lines,
  maintained,
  oneOf,
  readOnly,
  readOnlyTimes,
  set,
  stored,
  times,
} from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery } from '#src/http/list.ts'
import { DAY, MINUTE, parseDuration } from '#src/lib/duration.ts'
import { canonicalDomain } from '#src/lib/email.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso, isPlain } from '#src/lib/text.ts'
import { PICTURE_LIMIT, PIXEL_LIMIT, type PictureFault, readPicture } from '#src/pages/picture.ts'
import { THEME_NAME } from '#src/pages/themes.ts'
import { isDocumentId, MAX_DOCUMENT_ID } from '#src/protocol/oauth/client-document.ts'
import type { Tables } from '#src/storage/tables.ts'
import { isAssetAddress, STYLE_LIMIT } from './asset-address.ts'
import { UserAttributes } from './user-attributes-schema.ts'

/** Refused slugs. A URL with such a slug would look like one of the server's own paths. */
const reserved = new Set(['admin', 'api', 'oauth', 'saml', 'account'])

const slug = z
  .string('A slug of 3 to 64 characters.')
  .regex(
    /^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$/,
    '3 to 64 lower-case letters, digits and hyphens, without a hyphen at the beginning or end.',
  )
  .refine(text => !reserved.has(text) && !looksLikeId(text), 'This slug is reserved.')

const documentId = z
  .string('A URL.')
  .refine(isDocumentId, 'An https URL with a path, without fragment, at most 512 characters long.')

// At least 5 minutes, to leave time for a form. At most 365 days, because a cookie lasts at most 400 days.
const session_ttl = z.string('A duration such as 12h or 7d.').refine(text => {
  const ms = parseDuration(text)
  return ms !== undefined && ms >= 5 * MINUTE && ms <= 365 * DAY
}, 'A whole number followed by m, h, d or w, from 5m to 365d, such as 12h or 7d.')

const domain = z
  .string('A domain such as example.com.')
  .refine(text => canonicalDomain(text) !== undefined, 'A domain such as example.com, without wildcard.')

/** Maximum number of login domains. A company with many brands and countries needs a few dozen. */
const MAX_LOGIN_DOMAINS = 100
const loginDomain = domain.overwrite(text => canonicalDomain(text) ?? text)

const THEME =
  'default, graphite, evergreen, ember, or NAME for themes/NAME.css in the data directory (NAME has 1 to 64 lower-case letters, digits and hyphens). A theme that does not exist looks like default.'

export const PICTURE = `A PNG, SVG, WebP or JPEG picture of at most ${PICTURE_LIMIT / 1024} KiB, ${PIXEL_LIMIT} pixels wide and high, as a data URI, such as data:image/png;base64,iVBOR…; the server fetches no pictures.`

const faults: Record<PictureFault, string> = {
  form: PICTURE,
  bytes: `The picture is larger than ${PICTURE_LIMIT / 1024} KiB.`,
  content: 'The bytes are not a picture of the type that the data URI names.',
  pixels: `The picture exceeds ${PIXEL_LIMIT} pixels in width or height.`,
}

/** A picture as a data URI, or the URL of the stored picture. */
export const picture = z.string(PICTURE).superRefine((text, issues) => {
  const read = isAssetAddress(text) || readPicture(text)
  if (typeof read === 'string') issues.addIssue({ code: 'custom', message: faults[read] })
})

const COLOR = 'A colour of six hexadecimal digits, such as #2b50d8.'
const color = z
  .string(COLOR)
  .regex(/^#[0-9a-fA-F]{6}$/, COLOR)
  .overwrite(text => text.toLowerCase())

const STYLE = `CSS of at most ${STYLE_LIMIT / 1024} KiB; it can load nothing from other servers.`
const style = z
  .string(STYLE)
  .overwrite(text => text.replaceAll('\r\n', '\n'))
  .refine(text => text.trim() !== '', 'The CSS is empty. Send null to remove it.')
  .refine(text => isPlain(text), 'CSS without control characters.')
  .refine(text => Buffer.byteLength(text) <= STYLE_LIMIT, STYLE)

/** Maximum characters of the terms, about ten printed pages. The login shows them on a single page. */
const TERMS_LENGTH = 32 * 1024

const LINK = 'An https or mailto address of at most 1,024 characters, such as https://example.com/terms.'
const isLink = (text: string): boolean => {
  const { protocol, host, username, pathname } = URL.parse(text) ?? {}
  return (
    (protocol === 'https:' && host !== '' && username === '') ||
    (protocol === 'mailto:' && /.@./.test(pathname ?? ''))
  )
}
const link = z
  .string(LINK)
  .max(1024, LINK)
  .refine(text => isPlain(text) && !/\s/.test(text) && isLink(text), LINK)

const Terms = z
  .strictObject(
    {
      version: line(64, 1).describe('Name of the version. People are asked again when it changes.'),
      text: lines(TERMS_LENGTH).nullable().optional().describe('The terms as plain text.'),
      url: link
        .refine(text => text.startsWith('https:'), 'An https address.')
        .nullable()
        .optional()
        .describe('Page with the terms.'),
    },
    'An object with version, and with text or url.',
  )
  .refine(({ text, url }) => text?.trim() || url, 'Terms need a text or a url.')
  .meta({ id: 'Terms', description: 'Terms of use that people accept.' })

const nullable = <T extends z.ZodType>(schema: T) => schema.nullable().optional()

const PasswordPolicy = z
  .strictObject(
    {
      preset: nullable(z.literal('nist', 'nist, or null for the default rules.')).describe(
        'Rules of NIST SP 800-63B: length and a list of common passwords.',
      ),
      min_length: nullable(integer(1, 256)).describe('Minimum number of characters.'),
      require_uppercase: nullable(flag).describe('Whether an upper-case letter is required.'),
      require_lowercase: nullable(flag).describe('Whether a lower-case letter is required.'),
      require_digit: nullable(flag).describe('Whether a digit is required.'),
      require_special: nullable(flag).describe('Whether a special character is required.'),
      refuse_common: nullable(flag).describe('Whether common passwords are refused when people choose them.'),
      max_age_days: nullable(integer(1, 3650)).describe('Days after which a password must be replaced.'),
    },
    'An object of password rules.',
  )
  .meta({ id: 'PasswordPolicy', description: 'Rules of new passwords.' })

/** Settings as they are stored or sent. In a PUT, null resets a setting to its default. */
export const Settings = z
  .strictObject(
    {
      theme: nullable(z.string(THEME).regex(THEME_NAME, THEME)).describe(THEME),
      session_ttl: nullable(session_ttl).describe(
        'Lifetime of a login (default: a day), and maximum lifetime of a session (default: no limit).',
      ),
      mfa_required: nullable(flag).describe('Whether a login outside remembered browsers needs two factors.'),
      passkey_required: nullable(flag).describe(
        'Whether every login needs a passkey, either as the only factor or after another sign-in method. An authenticator app is not enough. Needs https and a host name, or localhost.',
      ),
      email_code: nullable(oneOf(['off', 'users', 'all'])).describe(
        'Which users may sign in with a code by mail. The code counts as one factor. `users`: users without permissions beyond `profile:*`; `all`: all users; default: `off`. The address must be verified. Needs a mail server.',
      ),
      remember_browser_days: nullable(integer(1, 30)).describe(
        'Days for which users may have a browser remembered, 1 to 30. By default no browser is remembered. A login by password or provider in a remembered browser needs no second factor, and its `acr` is `1`. Gatehouse still asks for the second factor in each of these cases: the user signed in with a code or link by mail; `passkey_required` or `acr_values` demand it; the request names permissions beyond `profile:*`; the user opens the console; the user changes the account. When the setting is removed, Gatehouse forgets all browsers.',
      ),
      self_deletion: nullable(flag).describe('Whether users may delete their own account.'),
      /** The pictures and the CSS are stored separately (assets.ts). Answers contain their URLs. */
      logo: nullable(picture).describe(`${PICTURE} Answers contain its URL.`),
      logo_dark: nullable(picture).describe(`The logo on dark pages. ${PICTURE}`),
      accent_color: nullable(color).describe('Colour of buttons and links, such as `#2b50d8`.'),
      custom_css: nullable(style).describe(STYLE),
      terms_url: nullable(link).describe('Terms of use, linked from each page.'),
      privacy_url: nullable(link).describe('Privacy policy, linked from each page.'),
      terms: nullable(Terms).describe(
        'Terms of use. Each user accepts them at the next login, before an application gets a code. By default there are no terms.',
      ),
      support_url: nullable(link).describe('Page or mail address for help, linked from each page.'),
      allowed_domains: nullable(set(domain, 100)).describe('Domains of new e-mail addresses; default: any.'),
      registration: nullable(oneOf(['off', 'open', 'domains', 'approval'])).describe(
        'Whether people may register themselves. `off` (default): no; `open`: yes; `domains`: yes, and `allowed_domains` must not be empty; `approval`: yes, and an administrator approves each person. If `allowed_domains` is not empty, the address must be in one of these domains. Needs a mail server.',
      ),
      login_domains: nullable(set(loginDomain, MAX_LOGIN_DOMAINS)).describe(
        'E-mail domains whose users sign in to this organization. A domain belongs to one organization at most. Only callers of the default organization can change the list.',
      ),
      step_up: nullable(oneOf(['all'])).describe(
        'Applications whose users must have authenticated within the five minutes before certain calls of the admin API. These calls could do lasting harm, such as most deletions, new client or webhook secrets, and changes of webhooks. `x-max-authentication-age` in the OpenAPI document marks these calls. `all`: every application; default: only the console.',
      ),
      console_acr: nullable(oneOf(['2', 'phr'])).describe(
        'Authentication context class that a login to the console needs. `2`: two factors; `phr`: a passkey, which needs https and a host name, or localhost. A user who lacks the factor adds it at the next login.',
      ),
      password_policy: nullable(PasswordPolicy),
      client_registration: nullable(oneOf(['off', 'initial_access_token', 'open'])).describe(
        'Which applications that registered themselves (RFC 7591) may sign in users of the organization. `open`: all; `initial_access_token`: only applications that registered with an initial access token of the organization; `off` (default): none. A narrower value ends the sessions of the applications that it excludes.',
      ),
      client_metadata_documents: nullable(oneOf(['off', 'allowlist', 'any'])).describe(
        'Which applications whose client_id is the URL of their metadata document may sign in users of the organization. `any`: all; `allowlist`: only applications in `allowed_metadata_documents`; `off` (default): none. A narrower value ends the sessions of the applications that it excludes.',
      ),
      allowed_metadata_documents: nullable(set(documentId, 1000)).describe(
        'URLs of metadata documents that the policy `allowlist` allows. URLs are compared exactly. Default: the documents of Claude, Claude Code, ChatGPT, Codex, Visual Studio Code, Zed and OpenCode.',
      ),
      blocked_clients: nullable(set(line(MAX_DOCUMENT_ID, 1), 1000)).describe(
        'Ids of blocked applications. Applications that an administrator registered cannot be blocked. Adding an id ends the sessions of its application.',
      ),
      user_attributes: nullable(UserAttributes).describe(
        'Attributes that users of the organization may have, in the order of the account pages. A PUT replaces the whole list.',
      ),
    },
    'An object of settings.',
  )
  .meta({
    id: 'OrganizationSettings',
    description: 'Settings of an organization. In a PUT, null resets a setting to its default.',
  })
export type Settings = z.output<typeof Settings>

/** An organization's rules for new passwords, with all defaults filled in. */
export interface PasswordPolicy {
  min_length: number
  /** Replaces `min_length` for a user with a second factor. */
  min_length_with_factor?: number | undefined
  require_uppercase: boolean
  require_lowercase: boolean
  require_digit: boolean
  require_special: boolean
  /** Refuses common passwords when users choose a password. */
  refuse_common: boolean
  max_age_days?: number | undefined
}

export const writable = {
  name: line(128, 1).describe('Name for administrators.'),
  slug: slug.describe('Unique in the instance; part of URLs.'),
  display_name: line(128, 1).describe('Name that users see.'),
  settings: Settings,
}

const acme = { name: 'Acme', slug: 'acme', settings: { session_ttl: '12h', mfa_required: true } }
const acmeAnswer = {
  id: 'org_019c1310-e405-7b26-8f3d-c7e41d905a68',
  ...acme,
  display_name: 'Acme',
  created_at: example.time,
  updated_at: example.time,
}

export const CreateOrganization = z
  .strictObject({
    ...writable,
    display_name: writable.display_name.optional().describe('Name that users see; default: `name`.'),
    settings: Settings.default({}),
  })
  .meta({ id: 'CreateOrganization', description: 'A new organization.', example: acme })
export type CreateOrganization = z.output<typeof CreateOrganization>

export const UpdateOrganization = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyTimes,
    id: readOnly(z.string()),
    user_count: maintained(count),
  })
  .meta({
    id: 'UpdateOrganization',
    description: 'The fields of an organization to change.',
    example: { display_name: 'Acme Inc.', settings: { mfa_required: null } },
  })
export type UpdateOrganization = z.output<typeof UpdateOrganization>

/** An organization without `user_count`, which only lists have. */
export const OrganizationAnswer = z
  .object({ id: stored.id, ...writable, ...times })
  .meta({ id: 'Organization', description: 'A tenant of the instance.', example: acmeAnswer })

const ListedOrganization = OrganizationAnswer.extend({ user_count: count.describe('Number of users.') }).meta(
  {
    id: 'ListedOrganization',
    description: 'An organization as lists show it.',
    example: { ...acmeAnswer, user_count: 12 },
  },
)

type Row = Tables['organizations']['$inferSelect']

/** Returns an organization in the form of the admin API's answer. */
export const organizationAnswer = (organization: Row): z.output<typeof OrganizationAnswer> => ({
  id: organization.id,
  name: organization.name,
  slug: organization.slug,
  display_name: organization.display_name,
  settings: organization.settings,
  created_at: iso(organization.created_at),
  updated_at: iso(organization.updated_at),
})

/** Returns an organization as an entry of the list, with `user_count`. */
export const organizationItem = (organization: Row): z.output<typeof ListedOrganization> => ({
  ...organizationAnswer(organization),
  user_count: organization.user_count,
})

export const ListOrganizations = listQuery({
  search: line(256).optional().describe('Part of name, slug or display name.'),
})
export type ListOrganizations = z.output<typeof ListOrganizations>

export const OrganizationList = listOf('OrganizationList', ListedOrganization)
