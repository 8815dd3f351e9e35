import type { Core } from '#src/context.ts'
import { accentUrl } from '#src/pages/accent.ts'
import type { Brand } from '#src/pages/data.ts'
import { settingsOf } from './settings.ts'
import type { Organization } from './store.ts'

/**
 * Returns the brand of an organization. The accent colour overrides the theme, because organizations that
 * share a theme may want different colours. The custom CSS overrides the theme and the accent colour, so that
 * an organization can change everything.
 */
export const brandOf = (
  { themes }: Core,
  organization: Pick<Organization, 'display_name' | 'settings'>,
): Brand => {
  const settings = settingsOf(organization)
  const { theme, accent_color, custom_css, logo, logo_dark, terms_url, privacy_url, support_url } = settings
  const { theme: base_theme, sheets } = themes.find(theme)
  return {
    name: organization.display_name,
    theme: base_theme,
    sheets: [
      ...sheets,
      ...(accent_color ? [accentUrl(accent_color)] : []),
      ...(custom_css ? [custom_css] : []),
    ],
    links: { terms_url, privacy_url, support_url },
    ...(accent_color && { accent: accent_color }),
    ...(logo && { logo }),
    ...(logo_dark && { logo_dark }),
  }
}
