import { describe, expect, test } from 'bun:test'
import { asset, assetUrl } from '#src/pages/assets.ts'
import type { Pages } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { type Sample, samples } from '#test/support/page-samples.ts'

const nameOf = ({ page, state }: Sample) => `${page}.${state}`

const find = (name: string): Sample => {
  const found = samples.find(sample => nameOf(sample) === name)
  if (!found) throw new Error(`no sample ${name}`)
  return found
}

describe('assets', () => {
  test('are served under their hash, cacheable for ever, with their type', async () => {
    const expected = {
      'style.css': 'text/css; charset=utf-8',
      'page.js': 'text/javascript; charset=utf-8',
      'gate.svg': 'image/svg+xml',
    }
    for (const [path, type] of Object.entries(expected)) {
      const url = assetUrl(path) ?? ''
      expect(url).toMatch(/^\/assets\/\w+\.[0-9a-f]{12}\.\w+$/)
      const response = asset(url)
      expect(Object.fromEntries(response?.headers.entries() ?? [])).toEqual({
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
        'cross-origin-resource-policy': 'same-origin',
      })
      expect(await response?.text()).toBe(await Bun.file(`${import.meta.dir}/../../templates/${path}`).text())
    }
  })

  test('nothing else is', () => {
    for (const path of [
      '/assets/style.css',
      '/assets/style.000000000000.css',
      '/assets/../login.eta',
      '/assets/',
      'constructor',
    ])
      expect(asset(path)).toBeUndefined()
  })

  test('PAG-05 an unknown theme is the default one', async () => {
    const { page, data } = find('logged-out.plain')
    const stylesheet = async (theme: string) =>
      (await render(page, { ...data, brand: { name: 'N', theme } } as Pages[typeof page]).text()).match(
        /themes\/(\w+)/,
      )?.[1]
    expect(await Promise.all(['ember', 'default', 'nope', '../style', '"><b>'].map(stylesheet))).toEqual([
      'ember',
      'default',
      'default',
      'default',
      'default',
    ])
  })
})
