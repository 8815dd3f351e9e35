/** Colours of sRGB as `#rrggbb` in lower case, and how well they are told apart. */

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

/** From 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
export const contrast = (a: string, b: string): number => {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (light + 0.05) / (dark + 0.05)
}

/** `share` of the second colour, from 0 to 1. */
export const mix = (color: string, other: string, share: number): string => {
  const others = channelsOf(other)
  const mixed = channelsOf(color).map((channel, i) =>
    Math.round(channel + ((others[i] ?? 0) - channel) * share)
      .toString(16)
      .padStart(2, '0'),
  )
  return `#${mixed.join('')}`
}

/** The colour, or the nearest to it on the way to `goal`, that has the contrast to the ground. */
export const readableOn = (ground: string, color: string, goal: string, ratio: number): string => {
  for (let percent = 0; percent < 100; percent++) {
    const candidate = mix(color, goal, percent / 100)
    if (contrast(candidate, ground) >= ratio) return candidate
  }
  return goal
}
