import { afterAll, expect } from 'bun:test'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { names, servePages } from '#test/support/page-server.ts'

const server = servePages()
afterAll(async () => {
  await closeChromium()
  await server.stop(true)
})

/**
 * Opens all <details> elements. Returns the elements that reach beyond the window or are wider than their
 * container. The function runs in the page.
 */
const tooWide = (): string[] => {
  for (const details of document.querySelectorAll('details')) {
    // The browser opens only one of the <details> elements with the same `name`.
    details.removeAttribute('name')
    details.open = true
  }
  // Tabs may be wider than the window, because they scroll within their line.
  const words = [...document.querySelectorAll<HTMLElement>('main *, .card *')].filter(
    element => !element.closest('svg, .unseen, .parts, .tabs') && element.clientWidth > 0,
  )
  const isOut = (element: HTMLElement) => {
    const { left, right } = element.getBoundingClientRect()
    const is_wide = element.tagName !== 'INPUT' && element.scrollWidth > element.clientWidth + 1
    return left < -1 || right > innerWidth + 1 || is_wide
  }
  const page = document.documentElement.scrollWidth > innerWidth ? ['page'] : []
  return [...page, ...words.filter(isOut).map(({ outerHTML }) => outerHTML.slice(0, 120))]
}

for (const locale of ['de', 'pl', 'ar'])
  testInChromium(
    `every page and mail in ${locale} is as wide as a small phone, however long its words`,
    async () => {
      const { page, close } = await openPage({ viewport: { width: 320, height: 640 } })
      const wide: Record<string, string[]> = {}
      for (const name of names) {
        await page.goto(`${server.url}${name}?locale=${locale}`)
        const found = await page.evaluate(tooWide)
        if (found.length > 0) wide[name] = found
      }
      expect(wide).toEqual({})
      await close()
    },
    300_000,
  )

testInChromium('a page in a right-to-left language mirrors one in a left-to-right language', async () => {
  const { page, close } = await openPage({ viewport: { width: 390, height: 844 } })
  const places = async (locale: string) => {
    await page.goto(`${server.url}account.usual?locale=${locale}`)
    return page.evaluate(() =>
      ['.monogram', '.bar form', '.tab', '.avatar', '.sessions li .scope-icon', '.sessions form'].map(
        selector => {
          const { left, right } = document.querySelector(selector)?.getBoundingClientRect() ?? {
            left: 0,
            right: 0,
          }
          return [selector, Math.abs(left) < innerWidth - right ? 'left' : 'right']
        },
      ),
    )
  }
  const from_left = await places('en')
  expect(new Set(from_left.map(([, side]) => side)).size).toBe(2)
  expect(await places('ar')).toEqual(
    from_left.map(([selector = '', side]) => [selector, side === 'left' ? 'right' : 'left']),
  )
  await close()
})

testInChromium('an address runs left to right on a right-to-left page', async () => {
  const { page, close } = await openPage()
  await page.goto(`${server.url}error.redirect?locale=ar`)
  const directions = await page.evaluate(() =>
    ['html', 'code'].map(name => getComputedStyle(document.querySelector(name) as Element).direction),
  )
  expect(directions).toEqual(['rtl', 'ltr'])
  await close()
})

testInChromium('a short name stands beside its monogram, not below it', async () => {
  const { page, close } = await openPage()
  for (const width of [320, 390, 1280]) {
    await page.setViewportSize({ width, height: 844 })
    await page.goto(`${server.url}account-data.usual`)
    const middles = await page.evaluate(() =>
      ['.bar .monogram', '.bar .brand-name'].map(selector => {
        const { top, bottom } = document.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect()
        return (top + bottom) / 2
      }),
    )
    expect(Math.abs((middles[0] ?? 0) - (middles[1] ?? 99))).toBeLessThan(8)
  }
  await close()
})

testInChromium('a chosen language keeps the organization that was typed', async () => {
  const { page, close } = await openPage()
  for (const name of ['reset-password.organization', 'login.organization']) {
    await page.goto(`${server.url}${name}`)
    await page.locator('summary').click()
    await page.locator('[name=organization]').fill('acme & co')
    const sent = page.waitForRequest(request => request.method() === 'POST')
    await page.locator('.chosen').click()
    await page.locator('[name=language][value=de]').click()
    const named = new URLSearchParams((await sent).postData() ?? '').get('page') ?? ''
    expect(new URL(named, server.url).searchParams.get('organization')).toBe('acme & co')
  }
  await close()
})
