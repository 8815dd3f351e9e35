import { describe, expect, test } from 'bun:test'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }
import { accentAsset, accentStyle, accentUrl } from '#src/pages/accent.ts'
import { contrast, mix, readableOn } from '#src/pages/color.ts'

type Tokens = Record<string, string>

const tokensOf = (css: string): [light: Tokens, dark: Tokens] => {
  const read = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name = '', value = '']) => [name, value]),
    )
  const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)')
  return [read(light), read(dark)]
}

/** Six steps of each channel. `colors` has all 216 combinations. */
const steps = [0, 51, 102, 153, 204, 255].map(step => step.toString(16).padStart(2, '0'))
const colors = steps.flatMap(red => steps.flatMap(green => steps.map(blue => `#${red}${green}${blue}`)))

describe('an accent colour', () => {
  const themes = Object.entries(embed('templates/themes', ['.css']))
  for (const [name, css] of themes)
    test(`${name}: everything written and drawn with it is visible, light and dark`, () => {
      const weak: unknown[] = []
      for (const color of colors)
        for (const scheme of [0, 1] as const) {
          const own = tokensOf(accentStyle(color))[scheme]
          const tokens = { ...tokensOf(css)[scheme], ...own }
          const edge = own['accent-edge'] === 'transparent' ? 'accent' : 'accent-edge'
          const pairs: [string, string, number][] = [
            ['on-accent', 'accent', 4.5],
            ['on-accent', 'accent-hover', 4.5],
            ['on-accent-soft', 'accent-soft', 4.5],
            ...['surface', 'sunken', 'canvas'].flatMap((ground): [string, string, number][] => [
              ['link', ground, 4.5],
              ['focus', ground, 3],
              [edge, ground, 3],
            ]),
            ['text', 'glow', 4.5],
            ['muted', 'glow', 4.5],
          ]
          for (const [front, back, least] of pairs) {
            const ratio = contrast(tokens[front] ?? '', tokens[back] ?? '')
            if (!(ratio >= least)) weak.push([color, ['light', 'dark'][scheme], front, back, ratio])
          }
        }
      expect(weak).toEqual([])
    })

  test('is kept as given; only colours that need contrast are adjusted', () => {
    for (const color of colors) expect(tokensOf(accentStyle(color))[0].accent).toBe(color)
    expect(['#2b50d8', '#e4002b', '#ffffff'].map(color => tokensOf(accentStyle(color))[1].accent)).toEqual([
      '#2b50d8',
      '#e4002b',
      '#ffffff',
    ])
    for (const color of ['#000000', '#0a1a4a', '#242424'])
      expect(contrast(tokensOf(accentStyle(color))[1].accent ?? '', '#242424')).toBeGreaterThan(7.9)
    expect(tokensOf(accentStyle('#2b50d8'))[0]).toMatchObject({
      link: '#2b50d8',
      focus: '#2b50d8',
      'accent-edge': 'transparent',
    })
    const on = (color: string) => tokensOf(accentStyle(color))[0]['on-accent']
    expect([on('#2b50d8'), on('#ffd400')]).toEqual(['#ffffff', '#000000'])
  })

  test('has a stylesheet whose URL contains the colour and a hash', async () => {
    const url = accentUrl('#2b50d8')
    expect(url).toMatch(/^\/assets\/accents\/2b50d8\.[0-9a-f]{12}\.css$/)
    const answer = accentAsset(url)
    expect(await answer?.text()).toBe(accentStyle('#2b50d8'))
    expect(Object.fromEntries(answer?.headers ?? [])).toEqual({
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
    })
    for (const other of ['2b50d9', '2B50D8', '..', '2b50d8/..'])
      expect(accentAsset(url.replace('2b50d8', other))).toBeUndefined()
    expect(accentAsset(`${url}x`)).toBeUndefined()
  })
})

test('colours are mixed by channel, and contrast follows WCAG', () => {
  expect(mix('#000000', '#ffffff', 0.5)).toBe('#808080')
  expect(mix('#102030', '#ffffff', 0)).toBe('#102030')
  expect(contrast('#000000', '#ffffff')).toBe(21)
  expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 2)
  for (const color of [
    '#2b50d8',
    '#ffd400',
    '#e4002b',
    '#0a7d6c',
    '#808080',
    '#000000',
    '#ffffff',
    '#c000ff',
  ])
    for (const to of [0, 1] as const) expect(readableOn('#808080', color, to, 1)).toBe(color)
  expect(readableOn('#ffffff', '#ffd400', 0, 21)).toBe('#000000')
  expect(readableOn('#242424', '#0a1a4a', 1, 6)).toBe('#87a1ef')
})
