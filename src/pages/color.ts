/** sRGB colours as `#rrggbb` in lower case, and the contrast between them. */

const channelsOf = (color: string): number[] =>
  [1, 3, 5].map(at => Number.parseInt(color.slice(at, at + 2), 16))

/** https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
const luminance = (color: string): number => {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map(channel => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Returns the contrast ratio, from 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
export const contrast = (a: string, b: string): number => {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (light + 0.05) / (dark + 0.05)
}

const toHex = (channels: number[]): string =>
  `#${channels.map(channel => Math.round(channel).toString(16).padStart(2, '0')).join('')}`

/** Mixes two colours. `share` is the weight of `other`, from 0 to 1. */
export const mix = (color: string, other: string, share: number): string => {
  const others = channelsOf(other)
  return toHex(channelsOf(color).map((channel, i) => channel + ((others[i] ?? 0) - channel) * share))
}

/**
 * Moves the HSL lightness towards 0 or 1. Keeps hue and saturation:
 * https://www.w3.org/TR/css-color-4/#rgb-to-hsl
 */
const lightened = (color: string, to: 0 | 1, share: number): string => {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map(channel => channel / 255)
  const [least, most] = [Math.min(red, green, blue), Math.max(red, green, blue)]
  const [range, lightness] = [most - least, (most + least) / 2]
  const saturation = range === 0 ? 0 : range / (1 - Math.abs(2 * lightness - 1))
  const sector =
    range === 0
      ? 0
      : most === red
        ? (green - blue) / range
        : most === green
          ? (blue - red) / range + 2
          : (red - green) / range + 4
  const moved = lightness + (to - lightness) * share
  const reach = saturation * Math.min(moved, 1 - moved)
  return toHex(
    [0, 8, 4].map(offset => {
      const k = (offset + sector * 2 + 12) % 12
      return 255 * (moved - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
    }),
  )
}

/**
 * Returns the colour if its contrast to the background reaches `ratio`. Otherwise makes the colour darker
 * (`to` is 0) or lighter (`to` is 1) in steps of one percent, and returns the first colour that reaches
 * `ratio`. Returns black or white when no step reaches `ratio`.
 */
export const readableOn = (ground: string, color: string, to: 0 | 1, ratio: number): string => {
  for (let percent = 0; percent < 100; percent++) {
    const candidate = lightened(color, to, percent / 100)
    if (contrast(candidate, ground) >= ratio) return candidate
  }
  return to === 0 ? '#000000' : '#ffffff'
}
