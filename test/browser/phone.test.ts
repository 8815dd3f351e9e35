/** Tests the layout of pages on a phone. */
import { afterAll, expect } from 'bun:test'
import { locales } from '#src/http/locale.ts'
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
  120_000,
)

testInChromium(
  'a code may have the digits of an Arabic or Persian keyboard or of a Japanese input method',
  async () => {
    const { page, close } = await openPage()
    for (const name of ['second-factor.totp', 'enrol-totp.usual', 'email-code.asked']) {
      await page.goto(`${server.url}${name}`)
      const field = page.locator('#code')
      for (const typed of ['123 456', '١٢٣٤٥٦', '۱۲۳۴۵۶', '１２３　４５６', '12345a']) {
        await field.fill(typed)
        const isValid = await field.evaluate(each => (each as HTMLInputElement).checkValidity())
        expect([name, typed, isValid]).toEqual([name, typed, typed !== '12345a'])
      }
    }
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-36 on a phone the current tab is in view, names take two lines, and no command breaks in a word',
  async () => {
    const { page, close } = await openPage({ viewport: { width: 320, height: 640 } })
    for (const locale of ['en', 'fr', 'ar', 'ja'])
      for (const name of ['account.usual', 'account-data.usual']) {
        await page.goto(`${server.url}${name}?locale=${locale}`)
        const tabs = await page
          .locator('.tab')
          .evaluateAll(all => all.map(tab => tab.getBoundingClientRect()))
        expect(new Set(tabs.map(({ y }) => y)).size).toBe(1)
        const { x = -1, width = 999 } = (await page.locator('.tab[aria-current]').boundingBox()) ?? {}
        expect([x >= 0, x + width <= 320]).toEqual([true, true])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
      }
    await page.setViewportSize({ width: 360, height: 640 })
    for (const locale of locales) {
      await page.goto(`${server.url}account.usual?locale=${locale}`)
      const [room, whole] = await page
        .locator('.tabs')
        .evaluate(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth])
      expect([locale, whole]).toEqual([locale, room ?? 0])
    }
    await page.setViewportSize({ width: 320, height: 640 })
    await page.goto(`${server.url}account.long`)
    const heights = await page
      .locator('.hero h2, .session-name > bdi')
      .evaluateAll(all =>
        all.map(name => name.clientHeight / Number.parseFloat(getComputedStyle(name).lineHeight)),
      )
    expect(Math.max(...heights)).toBeLessThan(2.1)
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${server.url}account.next`)
    const words = await page
      .locator('.word:visible')
      .evaluateAll(all => all.map(word => word.getClientRects().length))
    expect([words.length > 5, new Set(words)]).toEqual([true, new Set([1])])
    await close()
  },
  120_000,
)

testInChromium(
  'with text of double size on a phone no account page is wider than the screen',
  async () => {
    const { page, close } = await openPage({ viewport: { width: 390, height: 844 } })
    const session = await page.context().newCDPSession(page)
    await session.send('Page.enable')
    await session.send('Page.setFontSizes', { fontSizes: { standard: 32, fixed: 32 } })
    for (const locale of locales)
      for (const name of ['account.usual', 'account-security.usual', 'account-profile.refused']) {
        await page.goto(`${server.url}${name}?locale=${locale}`)
        const width = await page.evaluate('document.documentElement.scrollWidth')
        expect([locale, name, width]).toEqual([locale, name, 390])
      }
    await close()
  },
  120_000,
)
