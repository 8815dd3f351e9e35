import type { Context } from '#src/context.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { type Translate, translator } from '#src/pages/translate.ts'
import { viewTools } from '#src/pages/view.ts'

/**
 * False for a name that mail programs would show as a link. Also false for a name that could be a message to
 * the recipient, such as a long name or a name with four digits in a row. Users choose their names and can
 * have mail sent to others.
 */
export const isBare = (name: string): boolean =>
  name.length <= 64 && !/[\p{L}\p{N}][.:][\p{L}\p{N}]|[/@]|\p{N}{4}/u.test(name)

/**
 * Returns the kinds of the factors if {@link isBare} refuses their names, because users choose the names of
 * their factors. Returns an empty object when the mail names no factor, or can show the names.
 */
export const factorIn = (
  t: Translate,
  { factor, factor_types = 'passkey,totp' }: Record<string, string>,
): { factor?: string } => {
  if (factor === undefined || isBare(factor)) return {}
  const kinds = (['passkey', 'totp'] as const).filter(kind => factor_types.split(',').includes(kind))
  return { factor: kinds.map(kind => t(`enrol.kind.${kind}`)).join(', ') }
}

/**
 * False for an organization name that contains an address or a line break. The rule allows more than the rule
 * for names of users (`isBare`), because only administrators choose the name of an organization.
 */
const isBareBrand = (name: string): boolean =>
  !/[\p{L}\p{N}][.:。．｡](?:\p{L}{2}|\p{N})|[/\\@\p{Cc}\u2028\u2029]/u.test(name)

/** Name that mail shows instead of an organization name that mail programs would turn into a link. */
const NEUTRAL_BRAND = 'Gatehouse'

/** Returns the name of an organization as mail shows it. */
export const mailBrandOf = ({ display_name }: Organization): string =>
  isBareBrand(display_name) ? display_name : NEUTRAL_BRAND

/**
 * Formats a time in the first of `zones` that exists. Users and browsers may state unknown zones. If no zone
 * exists, the time is in UTC.
 */
export const timeOf = (locale: string, ms: number, zones: readonly unknown[]): string => {
  const known = zones.find((zone): zone is string => typeof zone === 'string' && isZone(zone))
  return new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    timeZone: known ?? 'UTC',
    timeZoneName: 'short',
    numberingSystem: 'latn',
  })
    .format(ms)
    .replaceAll('-', NON_BREAKING_HYPHEN)
}

const NON_BREAKING_HYPHEN = '\u2011'

const isZone = (zone: string): boolean => {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: zone }))
  } catch {
    return false
  }
}

const placeOf = (place: string | undefined, ip_address: string): string =>
  place ? `${place} (${ip_address})` : ip_address

/** Returns the browser, place and application of the request that caused a mail, as texts for the mail. */
export const originDetails = async (
  context: Context,
  locale: string,
  { user_agent, ip_address = '', application = '' }: Record<string, string>,
) => {
  const locate = await context.places.open()
  return {
    device: user_agent && viewTools(locale, translator(locale)).device(user_agent),
    place: placeOf(locate(ip_address, locale), ip_address),
    application: isBare(application) ? application : '',
  }
}
