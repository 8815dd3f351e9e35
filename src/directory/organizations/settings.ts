import { hash } from 'node:crypto'
import { parseDuration } from '#src/lib/duration.ts'
import { canonicalDomain } from '#src/lib/email.ts'
import { publishedIds } from '#src/protocol/oauth/published-documents.ts'
import type { Tables } from '#src/storage/tables.ts'
import type { PasswordPolicy, Settings } from './schema.ts'
import { definitionsOf } from './user-attributes.ts'

/**
 * Minimum password lengths of the preset `nist`: for users with one factor, and for users with a second
 * factor. The preset also refuses common passwords. It requires no kinds of characters, and lets no password
 * expire: https://pages.nist.gov/800-63-4/sp800-63b.html#passwordver
 */
const NIST = { single_factor: 15, with_factor: 8 }

/**
 * By default a password has at least eight characters, with an upper-case letter, a lower-case letter, a
 * digit and a special character. The preset `nist` changes these defaults. A password that a user chooses
 * must not be common.
 */
const passwordPolicyOf = (policy: Settings['password_policy'], hasFactor: boolean): PasswordPolicy => {
  const isNist = policy?.preset === 'nist'
  return {
    min_length: policy?.min_length ?? (isNist && !hasFactor ? NIST.single_factor : NIST.with_factor),
    min_length_with_factor: isNist ? (policy.min_length ?? NIST.with_factor) : undefined,
    require_uppercase: policy?.require_uppercase ?? !isNist,
    require_lowercase: policy?.require_lowercase ?? !isNist,
    require_digit: policy?.require_digit ?? !isNist,
    require_special: policy?.require_special ?? !isNist,
    refuse_common: policy?.refuse_common ?? true,
    max_age_days: policy?.max_age_days ?? undefined,
  }
}

/**
 * Returns the settings with all defaults. `session_ttl` is in ms, and domains are in canonical form. A
 * setting is off by default if it admits more people or applications, or if it makes a login weaker.
 */
export const settingsOf = ({ settings }: Pick<Tables['organizations']['$inferSelect'], 'settings'>) => {
  const {
    theme,
    session_ttl,
    mfa_required,
    passkey_required,
    email_code,
    remember_browser_days,
    self_deletion,
    logo,
    logo_dark,
    accent_color,
    custom_css,
    terms_url,
    terms,
    privacy_url,
    support_url,
    allowed_domains,
    registration,
    step_up,
    console_acr,
    password_policy: policy,
    user_attributes,
    client_registration,
    client_metadata_documents,
    allowed_metadata_documents,
    blocked_clients,
  } = settings as Settings
  return {
    theme: theme ?? undefined,
    session_ttl: session_ttl ? parseDuration(session_ttl) : undefined,
    mfa_required: mfa_required ?? false,
    passkey_required: passkey_required ?? false,
    email_code: email_code ?? 'off',
    remember_browser_days: remember_browser_days ?? undefined,
    self_deletion: self_deletion ?? false,
    terms: terms ? { version: terms.version, text: terms.text ?? '', url: terms.url ?? '' } : undefined,
    logo: logo ?? undefined,
    logo_dark: logo_dark ?? undefined,
    accent_color: accent_color ?? undefined,
    custom_css: custom_css ?? undefined,
    terms_url: terms_url ?? undefined,
    privacy_url: privacy_url ?? undefined,
    support_url: support_url ?? undefined,
    allowed_domains: (allowed_domains ?? []).map(domain => canonicalDomain(domain) ?? domain),
    registration: registration ?? 'off',
    step_up: step_up ?? undefined,
    console_acr: console_acr ?? undefined,
    password_policy: passwordPolicyOf(policy, (mfa_required || passkey_required) ?? false),
    user_attributes: definitionsOf(user_attributes),
    client_registration: client_registration ?? 'off',
    client_metadata_documents: client_metadata_documents ?? 'off',
    allowed_metadata_documents: allowed_metadata_documents ?? publishedIds,
    blocked_clients: blocked_clients ?? [],
  }
}

/**
 * Maximum bytes of a setting in an event, as JSON. A setting can have hundreds of KiB. Events must stay
 * small, because the list of events, the event stream and webhooks read hundreds of them at once.
 */
const RECORDED_BYTES = 4096

/**
 * Returns the settings for the metadata of an event. The size and hash of a setting replace its value if the
 * value is larger than `RECORDED_BYTES`. The event thus still shows that the setting has changed.
 */
export const recordedSettings = (settings: Settings): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => {
      const json = JSON.stringify(value)
      const bytes = Buffer.byteLength(json)
      return [name, bytes > RECORDED_BYTES ? { bytes, sha256: hash('sha256', json) } : value]
    }),
  )
