/** The looks of an organization in the console, with their preview, in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { axeFindings } from '#test/support/axe.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'
import { until } from '#test/support/until.ts'

let served: Awaited<ReturnType<typeof serveConsole>>
let opened: Opened
let page: Page
let faults: string[]

beforeEach(async () => {
  served = await serveConsole()
  opened = await openPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' })
  page = opened.page
  faults = []
  page.on('pageerror', error => faults.push(error.message))
  page.on('console', message => {
    if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) faults.push(message.text())
  })
})
afterEach(async () => {
  expect(faults).toEqual([])
  await opened.close()
  await served.stop()
})
afterAll(closeChromium)

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" width="64" height="64"><path d="M0 0h8v8H0z"/></svg>'
const frame = () => page.frameLocator('iframe.preview')
const label = (name: string) => page.getByLabel(name, { exact: true }).first()

testInChromium(
  'CON-44 looks are seen before they are saved, and a style never reaches the console',
  async () => {
    await enterConsole(page, served.url, '/console/organizations/default')
    await page.getByRole('link', { name: 'Looks' }).click()
    await frame().getByRole('heading', { name: 'Sign in' }).waitFor()
    await label('Accent colour').fill('blue')
    await page.getByText('A colour of six hexadecimal digits').waitFor()
    await label('Accent colour').fill('#0a7d4b')
    await frame().locator('link[href*="0a7d4b"]').waitFor({ state: 'attached' })
    await label('On light pages').setInputFiles({
      name: 'logo.svg',
      mimeType: 'image/svg+xml',
      buffer: Buffer.from(svg),
    })
    await frame().locator('img[src^="data:image/svg"]').first().waitFor()
    await label('CSS').fill(
      'main { display: none } h1::after { content: "</style><script>alert(1)</script>" }',
    )
    await frame().locator('main').waitFor({ state: 'hidden' })
    await page.getByRole('heading', { level: 1, name: 'Looks' }).waitFor()
    expect((await served.app.admin('GET', '/organizations/default')).body.settings).toEqual({})

    const answered = page.waitForResponse(answer => answer.request().method() === 'PUT')
    await page.getByRole('button', { name: 'Save changes' }).click()
    expect((await answered).status()).toBe(200)
    const { settings } = (await served.app.admin('GET', '/organizations/default')).body
    expect(settings).toEqual({
      accent_color: '#0a7d4b',
      logo: expect.stringMatching(/\.svg$/),
      custom_css: expect.stringMatching(/\.css$/),
    })
    await page.reload()
    await until(async () => (await label('CSS').inputValue()).includes('main { display: none }'))
    expect(await axeFindings(page)).toEqual([])
  },
  60_000,
)
