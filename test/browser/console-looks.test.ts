/** Tests in a browser how the console changes the looks of an organization and previews them. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { until } from '#test/support/until.ts'

const at = inConsole({}, { colorScheme: 'light' })

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" width="64" height="64"><path d="M0 0h8v8H0z"/></svg>'
const frame = () => at.page.frameLocator('iframe.preview')
const label = (name: string) => at.page.getByLabel(name, { exact: true }).first()

testInChromium(
  'CON-44 looks are seen before they are saved, and a style never reaches the console',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/organizations/default')
    await at.page.getByRole('link', { name: 'Looks' }).click()
    await frame().getByRole('heading', { name: 'Sign in' }).waitFor()
    await label('Accent colour').fill('blue')
    await at.page.getByText('A colour of six hexadecimal digits').waitFor()
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
    await at.page.getByRole('heading', { level: 1, name: 'Looks' }).waitFor()
    expect((await at.served.app.admin('GET', '/organizations/default')).body.settings).toEqual({})

    await at.save()
    const { settings } = (await at.served.app.admin('GET', '/organizations/default')).body
    expect(settings).toEqual({
      accent_color: '#0a7d4b',
      logo: expect.stringMatching(/\.svg$/),
      custom_css: expect.stringMatching(/\.css$/),
    })
    await at.page.reload()
    await until(async () => (await label('CSS').inputValue()).includes('main { display: none }'))
    expect(await axeFindings(at.page)).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-44 a style that cannot be read is not taken for the stored one',
  async () => {
    const path = '/organizations/default'
    await at.served.app.admin('PUT', path, { settings: { custom_css: 'h1 { color: red }' } })
    const { custom_css } = (await at.stored(path)).settings
    await at.page.route(`**${custom_css}`, route => route.fulfill({ status: 503, body: 'Busy.' }))
    await enterConsole(at.page, at.served.url, '/console/looks/default')
    await at.page.getByText('The server answered 503.').waitFor()
    expect(await label('CSS').count()).toBe(0)
    expect(await axeFindings(at.page)).toEqual([])
    await at.page.unrouteAll()
    await at.page.route(`**${custom_css}`, route => route.abort())
    await at.button('Try again').click()
    await at.page.getByText('The server cannot be reached.').waitFor()
    await at.page.unrouteAll()
    await at.button('Try again').click()
    await until(async () => (await label('CSS').inputValue()).includes('h1 { color: red }'))
  },
  120_000,
)

testInChromium(
  'CON-44 a changed style is read again after a save, and the former one is not shown meanwhile',
  async () => {
    const path = '/organizations/default'
    await at.served.app.admin('PUT', path, { settings: { custom_css: 'h1 { color: red }' } })
    await enterConsole(at.page, at.served.url, '/console/looks/default')
    await until(async () => (await label('CSS').inputValue()).includes('red'))
    const { promise, resolve } = Promise.withResolvers<void>()
    await at.page.route('**/assets/organizations/**', async route => {
      await promise
      await route.continue()
    })
    await label('CSS').fill('h1 { color: green }')
    await at.save()
    await label('CSS').waitFor({ state: 'detached' })
    resolve()
    await until(async () => (await label('CSS').inputValue()).includes('green'))
  },
  120_000,
)

testInChromium(
  'CON-44 a removed picture leaves no file in its field, and a file that cannot be read is reported',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/clients/shop#presentation')
    const field = label('Logo')
    const choose = () =>
      field.setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(svg) })
    const file = () => field.evaluate(input => (input as HTMLInputElement).value)
    await choose()
    await page.locator('.picture img[src^=data]').waitFor()
    expect(await file()).toEndWith('logo.svg')
    await at.button('Remove').click()
    expect(await file()).toBe('')
    await choose()
    await at.save()
    await page.locator('.picture img[src^="/assets/"]').waitFor()
    expect((await at.stored('/clients/shop')).logo).toEndWith('.svg')
    await page.evaluate(() => {
      FileReader.prototype.readAsDataURL = function () {
        this.dispatchEvent(new ProgressEvent('error'))
      }
    })
    await choose()
    await page.getByRole('alert').getByText('The file cannot be read.').waitFor()
    expect(await file()).toBe('')
    expect(await axeFindings(page)).toEqual([])
  },
  120_000,
)
