import { afterAll, expect } from 'bun:test'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { servePages } from '#test/support/page-server.ts'

const server = servePages()
afterAll(async () => {
  await closeChromium()
  await server.stop()
})

testInChromium(
  'PAG-24 on a phone the app is opened first and the QR code is behind a button',
  async () => {
    for (const [width, isPhone] of [
      [390, true],
      [1280, false],
    ] as const) {
      const { page, close } = await openPage({ viewport: { width, height: 844 }, hasTouch: isPhone })
      await page.goto(`${server.url}enrol-totp.usual`)
      expect(await page.getByRole('link', { name: 'Open authenticator app' }).isVisible()).toBe(isPhone)
      expect(await page.getByText('Use another device').isVisible()).toBe(isPhone)
      expect(await page.locator('main svg path').first().isVisible()).toBe(!isPhone)
      await close()
    }
  },
  60_000,
)
