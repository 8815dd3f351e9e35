/** Tests codes by mail, remembered browsers and photos in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { Json } from '#test/support/app.ts'
import { axeFindings } from '#test/support/axe.ts'
import { openBrowser } from '#test/support/browser.ts'
import { closeChromium, openPage, testInChromium, withAuthenticator } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'
import { codeOf, enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { PASSWORD } from '#test/support/people.ts'

const LOOKS: [string, BrowserContextOptions][] = [
  ['phone, light', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }],
  ['desktop, dark', { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' }],
]
const mail = captureMail()
let served: Awaited<ReturnType<typeof serveConsole>>
beforeEach(async () => {
  served = await serveConsole({ mail })
})
afterEach(() => served.stop())
afterAll(closeChromium)

const allow = async (settings: Json) =>
  expect((await served.app.admin('PUT', '/organizations/default', { settings })).status).toBe(200)
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
/** Waits for a page and checks it with axe. */
const arrives = async (page: Page, name: string) => {
  await heading(page, name)
  expect([name, await axeFindings(page)]).toEqual([name, []])
}
/** Types into the field that has the focus when its page is shown. */
const type = async (page: Page, text: string) => {
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(text)
}
/** Signs in with a password, by keyboard alone. */
const signIn = async (page: Page, username: string) => {
  await page.goto(`${served.url}/account`)
  await heading(page, 'Sign in')
  await type(page, username)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PASSWORD)
  await page.keyboard.press('Enter')
}
const signOut = async (page: Page) => {
  await page.goto(`${served.url}/account`)
  await button(page, 'Sign out').first().click()
  await heading(page, 'You’re signed out')
}

for (const [look, options] of LOOKS) {
  testInChromium(
    `MCD-01 MCD-02 MCD-08 MCD-09 a code by mail signs in, and is turned off with the password, ${look}`,
    async () => {
      expect(
        (await served.app.admin('PUT', `/users/${await idOf('grace')}`, { email_verified: true })).status,
      ).toBe(200)
      await allow({ email_code: 'users' })
      mail.clear()
      const { page, close } = await openPage(options)
      await page.goto(`${served.url}/account`)
      await page.getByRole('link', { name: 'Email me a code' }).click()
      await arrives(page, 'Sign in with a code')
      await type(page, 'grace')
      await page.keyboard.press('Enter')
      await arrives(page, 'Check your email')
      await deliverMails(served.app.context)
      const code = /^\d{6}$/m.exec(mail.mails.map(({ text }) => text).join('\n'))?.[0] ?? ''
      await type(page, code === '000000' ? '000001' : '000000')
      await page.keyboard.press('Enter')
      await page.getByText('That code isn’t right').waitFor()
      await arrives(page, 'Check your email')
      await type(page, code)
      await page.keyboard.press('Enter')
      await heading(page, 'Your account')
      await page.goto(`${served.url}/account/security`)
      await page.getByRole('heading', { name: 'Code by email' }).waitFor()
      await arrives(page, 'Security')
      await button(page, 'Turn off').click()
      await arrives(page, 'Confirm it’s you')
      await type(page, PASSWORD)
      await page.keyboard.press('Enter')
      await page.getByText('Codes by email are turned off.').waitFor()
      await arrives(page, 'Security')
      await button(page, 'Turn on').waitFor()
      await close()
    },
    300_000,
  )

  testInChromium(
    `RMB-01 RMB-05 a browser is remembered, listed and forgotten, ${look}`,
    async () => {
      await allow({ remember_browser_days: 30 })
      const own = openBrowser(served.app)
      const { key } = await enrolTotp(served.app, own, await openEnrolment(own, 'grace'))
      served.clock.skip(30 * SECOND)
      const { page, close } = await openPage(options)
      await signIn(page, 'grace')
      await arrives(page, 'Two-step verification')
      await page.getByLabel('Don’t ask again in this browser').check()
      await page.getByLabel('Six-digit code').fill(codeOf(served.app, key))
      await page.keyboard.press('Enter')
      await heading(page, 'Your account')
      await signOut(page)
      await signIn(page, 'grace')
      await heading(page, 'Your account')
      await page.goto(`${served.url}/account/security`)
      await arrives(page, 'Security')
      await page.getByRole('button', { name: 'Forget' }).click()
      // The login began without the second factor. Without the remembered browser it needs the second factor.
      await heading(page, 'Two-step verification')
      served.clock.skip(30 * SECOND)
      await page.getByLabel('Six-digit code').fill(codeOf(served.app, key))
      await page.keyboard.press('Enter')
      await arrives(page, 'Security')
      expect(await page.getByRole('heading', { name: 'Remembered browsers' }).count()).toBe(0)
      await close()
    },
    300_000,
  )
}

const idOf = async (username: string): Promise<string> =>
  (await served.app.admin('GET', `/users?search=${username}`)).body.data[0].id

testInChromium(
  'MCD-09 an administrator turns codes by mail off for a user, where the organization offers them',
  async () => {
    const path = `/users/${await idOf('grace')}`
    const { page, close } = await openPage()
    const box = page.getByLabel('May sign in with a code by mail')
    await enterConsole(page, served.url, `/console${path}`)
    await page.getByLabel('The email address is verified').waitFor()
    expect(await box.count()).toBe(0)
    await allow({ email_code: 'users' })
    await page.goto(`${served.url}/console${path}`)
    await box.uncheck()
    const saved = page.waitForResponse(answer => answer.request().method() === 'PUT')
    await button(page, 'Save changes').click()
    expect((await saved).status()).toBe(200)
    expect((await served.app.admin('GET', path)).body.email_code).toBe(false)
    await close()
  },
  120_000,
)

testInChromium(
  'PEO-39 one box for the terms serves the passkey and, without JavaScript, the password',
  async () => {
    await allow({ terms: { version: '1', text: 'You keep your account to yourself.' } })
    const openInvitation = async (page: Page, username: string) => {
      const { body } = await served.app.admin('POST', '/invitations', { delivery: 'link' })
      await page.goto(body.invitation_url)
      await page.getByLabel('First name').fill('Ada')
      await page.getByLabel('Last name').fill('Roe')
      await page.getByLabel('Username').fill(username)
      await page.getByLabel('Email').fill(`${username}@example.com`)
      await button(page, 'Continue').click()
      await page.getByText('You keep your account to yourself.').waitFor()
      await page.getByRole('checkbox').waitFor()
    }
    const { page, close } = await openPage({ viewport: { width: 390, height: 844 } })
    const device = await withAuthenticator(page)
    await openInvitation(page, 'pat')
    await arrives(page, 'Create your account')
    await button(page, 'Create passkey').click()
    expect(await device.credentials()).toEqual([])
    await page.getByRole('checkbox').check()
    await button(page, 'Create passkey').click()
    await heading(page, 'Save your recovery codes')
    await close()
    const plain = await openPage({ javaScriptEnabled: false })
    await openInvitation(plain.page, 'eve')
    expect(await plain.page.getByText('With a passkey').isVisible()).toBe(false)
    await plain.page.getByRole('checkbox').check()
    await plain.page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await plain.page.getByLabel('Repeat password').fill(PASSWORD)
    await button(plain.page, 'Use this password').click()
    await heading(plain.page, 'Your account')
    await plain.close()
  },
  300_000,
)

/** An Exif segment of a picture that is turned by 90 degrees. */
const TURNED = Buffer.from('ffe100224578696600004d4d002a00000008000101120003000000010006000000000000', 'hex')

testInChromium(
  'PEO-34 a photo that a camera stored turned is shown upright, also when it came without JavaScript',
  async () => {
    const drawn = await openPage()
    const uri = (await drawn.page.evaluate(
      "Object.assign(document.createElement('canvas'), { width: 40, height: 20 }).toDataURL('image/jpeg')",
    )) as string
    await drawn.close()
    const upright = Buffer.from(uri.split(',')[1] ?? '', 'base64')
    const buffer = Buffer.concat([upright.subarray(0, 2), TURNED, upright.subarray(2)])
    const { page, close } = await openPage({ javaScriptEnabled: false })
    await signIn(page, 'grace')
    await heading(page, 'Your account')
    await page.goto(`${served.url}/account/profile`)
    await page.locator('[name=picture]').setInputFiles({ name: 'photo.jpg', mimeType: 'image/jpeg', buffer })
    await page.getByLabel('First name').fill('Zoe')
    await button(page, 'Upload').click()
    await page.getByRole('status').waitFor()
    // The message is shown before the picture is loaded.
    await page.waitForLoadState()
    const size =
      "(({ naturalWidth, naturalHeight }) => [naturalWidth, naturalHeight])(document.querySelector('.picture img'))"
    expect(await page.evaluate(size)).toEqual([20, 40])
    // The typed name is kept, and the Enter key stores it.
    await page.getByLabel('First name').press('Enter')
    await page.getByText('Your changes are saved.').waitFor()
    expect((await served.app.admin('GET', `/users/${await idOf('grace')}`)).body.first_name).toBe('Zoe')
    await close()
  },
  120_000,
)

testInChromium(
  'PEO-34 a large PNG is uploaded as a JPEG, and not before it is cropped',
  async () => {
    const { page, close } = await openPage()
    await signIn(page, 'grace')
    await heading(page, 'Your account')
    await page.goto(`${served.url}/account/profile`)
    const uri = (await page.evaluate(`
      const canvas = Object.assign(document.createElement('canvas'), { width: 1200, height: 1600 })
      const context = canvas.getContext('2d')
      const pixels = context.createImageData(1200, 1600)
      for (let at = 0, seed = 1; at < pixels.data.length; at++) {
        seed = (seed * 16807) % 2147483647
        pixels.data[at] = at % 4 === 3 ? 255 * (at > pixels.data.length / 2) : 100 + (seed % 40)
      }
      context.putImageData(pixels, 0, 0)
      canvas.toDataURL('image/png')`)) as string
    const buffer = Buffer.from(uri.split(',')[1] ?? '', 'base64')
    await page.evaluate(`{
      const read = createImageBitmap
      createImageBitmap = file => new Promise(resolve => { proceed = () => resolve(read(file)) })
    }`)
    await served.app.events()
    await page.locator('[name=picture]').setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer })
    // The end of another form's load must not end the wait.
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await button(page, 'Upload').click()
    await page.evaluate('proceed()')
    await page.getByRole('status').waitFor()
    await page.waitForLoadState()
    const { body } = await served.app.admin('GET', `/users/${await idOf('grace')}`)
    expect(body.picture).toEndWith('.jpg')
    const corner = `(async () => {
      const image = document.querySelector('.picture img')
      await image.decode()
      const context = new OffscreenCanvas(1, 1).getContext('2d')
      context.drawImage(image, 0, 0)
      return [...context.getImageData(0, 0, 1, 1).data]
    })()`
    expect(await page.evaluate(corner)).toEqual([255, 255, 255, 255])
    expect((await served.app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.updated', { fields: ['picture'] }],
    ])
    await close()
  },
  120_000,
)
