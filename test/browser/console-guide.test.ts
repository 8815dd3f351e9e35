/** Tests the guide in the console, in a browser. */
import { afterAll, expect } from 'bun:test'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'

afterAll(closeChromium)

testInChromium(
  'CON-45 pages of the guide are opened from the menu, linked to each other, and loaded on demand',
  async () => {
    const served = await serveConsole()
    const { page, close } = await openPage({ viewport: { width: 1280, height: 700 }, locale: 'de' })
    const scripts: string[] = []
    page.on('request', request => {
      if (request.url().endsWith('.js')) scripts.push(request.url())
    })
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
    await enterConsole(page, served.url)
    await heading('Übersicht')
    const before = scripts.length
    await page.getByRole('link', { name: 'Anleitung', exact: true }).click()
    await page.getByRole('link', { name: /^Audit log/ }).click()
    await heading('Audit log')
    expect(scripts.length).toBeGreaterThan(before)
    expect(await page.locator('article').getAttribute('lang')).toBe('en')
    await page.locator('article pre').first().waitFor()
    await page.locator('article').getByRole('link', { name: 'Webhooks', exact: true }).first().click()
    await heading('Webhooks')

    await page.goto(`${served.url}/console/guide/settings#mail`)
    await heading('Settings')
    await page.locator('#mail').waitFor()
    const isShown = `(top => top >= 0 && top < innerHeight)(document.getElementById('mail').getBoundingClientRect().top)`
    expect(await page.evaluate(isShown)).toBe(true)
    await page.goto(`${served.url}/console/guide/nothing`)
    await page.getByText('Nicht gefunden').waitFor()
    await close()
    await served.stop()
  },
  120_000,
)
