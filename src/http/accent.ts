import { createHash } from 'node:crypto'
import { contrast, mix, readableOn } from '#src/lib/color.ts'
import { assetAnswer } from './assets.ts'

const WHITE = '#ffffff'
const BLACK = '#000000'
/** Of both schemes, the ground of all themes that leaves least room for contrast. */
const LIGHT = '#f0f0f0'
const DARK = '#242424'

/** White where it can be read, else black: one of both always can. */
export const onAccent = (accent: string): string => (contrast(accent, WHITE) >= 4.5 ? WHITE : BLACK)

interface Scheme {
  ground: string
  /** Where a colour is moved to until it is seen. */
  goal: string
  soft: string
  glow: string
  link: number
  focus: number
}

/** A theme's tokens that have to do with the accent. WCAG 2.2 asks for 4.5 where it is read and 3 where it is seen. */
const tokens = (accent: string, { ground, goal, soft, glow, link, focus }: Scheme): string => {
  const on_accent = onAccent(accent)
  const values = {
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
  const lines = Object.entries(values).map(([name, value]) => `  --${name}: ${value};`)
  return `:root {\n${lines.join('\n')}\n}\n`
}

const lightTokens = (accent: string): string =>
  tokens(accent, {
    ground: LIGHT,
    goal: BLACK,
    soft: mix(accent, WHITE, 0.9),
    glow: mix(accent, LIGHT, 0.94),
    link: 4.5,
    focus: 3,
  })

/** Where all is dark, a colour that is as dark as the ground would be no button: it is taken light instead. */
const darkTokens = (given: string): string => {
  const accent = contrast(given, BLACK) < 1.6 ? readableOn(DARK, given, WHITE, 6) : given
  return tokens(accent, {
    ground: DARK,
    goal: WHITE,
    soft: mix(accent, '#16181d', 0.8),
    glow: mix(accent, '#0b0d12', 0.88),
    link: 6,
    focus: 4.5,
  })
}

/** The stylesheet of an organization's accent colour (`#rrggbb`), for light and dark. */
export const accentStyle = (accent: string): string =>
  `${lightTokens(accent)}@media (prefers-color-scheme: dark) {\n${darkTokens(accent)}}\n`

/** Nothing is stored: the address says the colour, and a hash of what we make of it. */
export const accentUrl = (accent: string): string => {
  const hash = createHash('sha256').update(accentStyle(accent)).digest('hex').slice(0, 12)
  return `/assets/accents/${accent.slice(1)}.${hash}.css`
}

/** The answer for the address of an accent's stylesheet; undefined for any other. */
export const accentAsset = (pathname: string): Response | undefined => {
  const [, color] = /^\/assets\/accents\/([0-9a-f]{6})\./.exec(pathname) ?? []
  const accent = `#${color}`
  return color && accentUrl(accent) === pathname ? assetAnswer(accentStyle(accent), 'css') : undefined
}
