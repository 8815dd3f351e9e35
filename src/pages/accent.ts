import { createHash } from 'node:crypto'
import { assetAnswer } from './asset-answer.ts'
import { assetText } from './assets.ts'
import { contrast, mix, readableOn } from './color.ts'
import type { Brand } from './data.ts'

const WHITE = '#ffffff'
const BLACK = '#000000'
/**
 * Bounds of the backgrounds of the built-in themes: no light background is darker than `LIGHT`, and no dark
 * background is lighter than `DARK`. A colour with enough contrast to its bound is thus readable in each
 * theme.
 */
const LIGHT = '#f0f0f0'
const DARK = '#242424'

interface Scheme {
  ground: string
  /**
   * Direction in which a colour is adjusted until it has enough contrast: 0 towards black, 1 towards white.
   */
  goal: 0 | 1
  soft: string
  glow: string
  link: number
  focus: number
}

/**
 * Returns the theme tokens that depend on the accent colour. WCAG 2.2 requires a contrast of 4.5:1 for text
 * and 3:1 for components: https://www.w3.org/TR/WCAG22/#contrast-minimum,
 * https://www.w3.org/TR/WCAG22/#non-text-contrast
 */
const tokensOf = (accent: string, { ground, goal, soft, glow, link, focus }: Scheme) => {
  // Either white or black is readable on the accent: every colour has a contrast of at least 4.5 to white or
  // to black.
  const on_accent = contrast(accent, WHITE) >= 4.5 ? WHITE : BLACK
  return {
    accent,
    'accent-hover': on_accent === WHITE ? mix(accent, BLACK, 0.15) : mix(accent, WHITE, 0.2),
    'accent-edge': contrast(accent, ground) >= 3 ? 'transparent' : readableOn(ground, accent, goal, 3),
    'on-accent': on_accent,
    'accent-soft': soft,
    'on-accent-soft': readableOn(soft, accent, goal, 4.5),
    link: readableOn(ground, accent, goal, link),
    focus: readableOn(ground, accent, goal, focus),
    glow,
  }
}

const lightTokens = (accent: string) =>
  tokensOf(accent, {
    ground: LIGHT,
    goal: 0,
    soft: mix(accent, WHITE, 0.9),
    glow: mix(accent, LIGHT, 0.94),
    link: 4.5,
    focus: 3,
  })

/**
 * Returns the tokens of the dark scheme. An accent that is about as dark as the background, or darker, is
 * first lightened, so that buttons stand out.
 */
const darkTokens = (given: string) => {
  const accent = contrast(given, BLACK) < 1.6 ? readableOn(DARK, given, 1, 8) : given
  return tokensOf(accent, {
    ground: DARK,
    goal: 1,
    soft: mix(accent, '#16181d', 0.8),
    glow: mix(accent, '#0b0d12', 0.88),
    link: 6,
    focus: 4.5,
  })
}

/**
 * Returns the stylesheet of an organization's accent colour (`#rrggbb`), for the light and the dark scheme.
 */
export const accentStyle = (accent: string): string =>
  `${rule(lightTokens(accent))}@media (prefers-color-scheme: dark) {\n${rule(darkTokens(accent))}}\n`

const rule = (tokens: Record<string, string>): string =>
  `:root {\n${Object.entries(tokens)
    .map(([name, value]) => `  --${name}: ${value};\n`)
    .join('')}}\n`

/**
 * Returns the colours that are derived from an accent, by token name: first the light scheme, then the dark
 * scheme.
 */
export const accentTokens = (accent: string) => [lightTokens(accent), darkTokens(accent)] as const

const urls = new Map<string, string>()
/**
 * Maximum number of cached URLs. Without a limit the cache could grow with each colour that an organization
 * sets.
 */
const MAX_URLS = 1_000

/**
 * Returns the URL of the accent's stylesheet. The URL contains the colour, from which the server computes the
 * stylesheet, and a hash of the stylesheet.
 */
export const accentUrl = (accent: string): string => {
  const known = urls.get(accent)
  if (known) return known
  const hash = createHash('sha256').update(accentStyle(accent)).digest('hex').slice(0, 12)
  const url = `/assets/accents/${accent.slice(1)}.${hash}.css`
  if (urls.size >= MAX_URLS) urls.clear()
  urls.set(accent, url)
  return url
}

/** Returns the response for the URL of an accent stylesheet. Returns undefined for any other path. */
export const accentAsset = (pathname: string): Response | undefined => {
  const [, color] = /^\/assets\/accents\/([0-9a-f]{6})\./.exec(pathname) ?? []
  const accent = `#${color}`
  return color && accentUrl(accent) === pathname ? assetAnswer(accentStyle(accent), 'css') : undefined
}

/**
 * Returns the accents of the light and the dark scheme. Browsers colour their address bar with these colours.
 */
export const frameColors = ({ theme, accent }: Pick<Brand, 'theme' | 'accent'>): string[] =>
  accent
    ? accentTokens(accent).map(tokens => tokens.accent)
    : [...(assetText(`themes/${theme}.css`) ?? assetText('themes/default.css') ?? '').matchAll(ACCENT)].map(
        ([, color = '']) => color,
      )

const ACCENT = /--accent: (#[0-9a-f]{6});/g
