import { afterAll, expect } from 'bun:test'
import { guideSections } from '#src/guide/pages.ts'
import { startGatehouse } from '#src/testing/index.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'

const gatehouse = await startGatehouse()
afterAll(async () => {
  await closeChromium()
  await gatehouse.close()
})

testInChromium(
  'no page of the guide is wider than the screen, without JavaScript',
  async () => {
    const { page, close } = await openPage({ javaScriptEnabled: false })
    const paths = ['', ...guideSections.flatMap(({ pages }) => pages.map(({ subject }) => `/${subject}`))]
    for (const path of paths) {
      await page.goto(`${gatehouse.url}/guide${path}`)
      for (const width of [320, 390, 700, 780, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        const needed = await page.evaluate(() => document.documentElement.scrollWidth)
        expect([path, width, needed]).toEqual([path, width, width])
      }
    }
    await close()
  },
  120_000,
)
