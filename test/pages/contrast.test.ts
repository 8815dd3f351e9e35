import { describe, expect, test } from 'bun:test'
import { embed } from '#src/lib/embed.ts'

describe('contrast (WCAG 2.2, 1.4.3 and 1.4.11)', () => {
  const luminance = (hex: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
      const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255
      return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const contrast = (a: string, b: string): number => {
    const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
    return (light + 0.05) / (dark + 0.05)
  }
  const tokensOf = (css: string) => {
    const read = (text: string) =>
      Object.fromEntries(
        [...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [name, value]),
      )
    const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)')
    return { light: read(light), dark: read(dark.split('\n}\n')[0] ?? '') }
  }

  const grounds = ['surface', 'sunken', 'canvas', 'glow']
  const text = [
    ...grounds.flatMap(ground => [
      ['text', ground],
      ['muted', ground],
    ]),
    ...['surface', 'canvas'].flatMap(ground => [
      ['link', ground],
      ['danger', ground],
    ]),
    ['on-accent', 'accent'],
    ['on-accent', 'accent-hover'],
    ['on-accent-soft', 'accent-soft'],
    ...['danger', 'good', 'warn'].map(name => [name, `${name}-soft`]),
  ]
  const shapes = [
    ['control', 'surface'],
    ['focus', 'surface'],
    ['focus', 'sunken'],
    ['focus', 'canvas'],
    ['accent', 'surface'],
  ]
  const themes = embed('templates/themes', ['.css'])

  test('there are at least three themes, each with the same tokens', () => {
    const names = Object.values(themes).flatMap(css =>
      Object.values(tokensOf(css)).map(tokens => Object.keys(tokens).join()),
    )
    expect(Object.keys(themes).length).toBeGreaterThan(2)
    expect(new Set(names).size).toBe(1)
  })

  for (const [path, css] of Object.entries(themes))
    for (const [scheme, tokens] of Object.entries(tokensOf(css)))
      test(`${path} ${scheme}`, () => {
        const weak = (pairs: string[][], least: number) =>
          pairs
            .map(([front = '', back = '']) => ({
              front,
              back,
              ratio: contrast(tokens[front] ?? '', tokens[back] ?? ''),
            }))
            .filter(({ ratio }) => !(ratio >= least))
        expect([...weak(text, 4.5), ...weak(shapes, 3)]).toEqual([])
      })

  test('the colours of avatars', () => {
    const { light, dark } = tokensOf(embed('templates', ['style.css'])['style.css'] ?? '')
    for (const tokens of [light, dark])
      for (const number of [1, 2, 3, 4, 5, 6])
        expect(contrast(tokens[`tone-${number}`] ?? '', tokens[`on-tone-${number}`] ?? '')).toBeGreaterThan(
          4.5,
        )
  })
})
