/** Tests the pages in a browser, with and without page.js. */
import { afterAll, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { servePages } from '#test/support/page-server.ts'

const server = servePages(0)

afterAll(async () => {
  await closeChromium()
  await server.stop(true)
})

const opened = async (name: string, options: Parameters<typeof openPage>[0] = {}) => {
  const { page, close } = await openPage(options)
  await page.goto(`${server.url}${name}`)
  return { page, close }
}

const textOf = async (page: Page): Promise<string> => {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download' }).click(),
  ])
  expect(file.suggestedFilename()).toBe('id.northwind.example-recovery-codes.txt')
  return Bun.file(await file.path()).text()
}

testInChromium(
  'PAG-20 recovery codes are copied, downloaded, printed without controls, and left after a tick',
  async () => {
    const { page, close } = await opened('recovery-codes.usual', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const codes = await page.locator('.recovery-code').allInnerTexts()
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(codes.join('\n'))

    await page.getByRole('button', { name: 'Continue' }).click()
    expect(page.url()).toEndWith('/recovery-codes.usual')

    await page.evaluate('globalThis.printed = 0; print = () => printed++')
    await page.getByRole('button', { name: 'Print' }).click()
    expect(await page.evaluate('printed')).toBe(1)
    await page.emulateMedia({ media: 'print' })
    const paper = await page.locator('main').textContent()
    for (const fact of ['Account: ada', 'Server: id.northwind.example', 'Date: November 20, 2026', ...codes])
      expect(paper).toContain(fact)
    expect(await page.locator(':is(button, input, a, [role=alert]):visible').count()).toBe(0)

    await page.emulateMedia({ media: 'screen' })
    await page.getByLabel('I have saved these codes').check()
    await page.getByRole('button', { name: 'Continue' }).click()
    expect(page.url()).toEndWith('/oauth/enrol?request=request-8Qx')
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-20 without JavaScript the codes are downloaded, and no button is dead',
  async () => {
    const { page, close } = await opened('recovery-codes.usual', { javaScriptEnabled: false })
    const codes = await page.locator('.recovery-code').allInnerTexts()
    expect(codes).toHaveLength(10)
    const lines = (await textOf(page)).split('\r\n')
    expect(lines.slice(0, 5)).toEqual([
      'Save your recovery codes',
      'Account: ada',
      'Server: id.northwind.example',
      'Date: November 20, 2026',
      '',
    ])
    expect(lines.slice(5, 15)).toEqual(codes.map((code, index) => `${index + 1}. ${code}`))
    expect(await page.locator('button:visible').allInnerTexts()).toEqual(['Continue'])
    await close()
  },
  120_000,
)

testInChromium(
  'a browser without passkeys or JavaScript offers the recovery code in place of the passkey',
  async () => {
    for (const name of ['login.passkey', 'confirm.passkey'])
      for (const [javaScriptEnabled, hasPasskeys] of [
        [true, true],
        [true, false],
        [false, true],
      ] as const) {
        const { page, close } = await openPage({ javaScriptEnabled })
        if (!hasPasskeys) await page.addInitScript('delete globalThis.PublicKeyCredential')
        await page.goto(`${server.url}${name}`)
        const isOffered = await page.getByRole('button', { name: /passkey/i }).isVisible()
        const isMissing = await page.getByText('This browser can’t use passkeys here').isVisible()
        const recovers = await page.getByRole('link', { name: 'Use a recovery code' }).isVisible()
        const works = javaScriptEnabled && hasPasskeys
        expect([name, isOffered, isMissing, recovers]).toEqual([name, works, !works, !works])
        await close()
      }
  },
  120_000,
)

testInChromium(
  'the autofill offers passkeys again after a cancelled request',
  async () => {
    const { page, close } = await openPage()
    // A browser without a window has no button that cancels a request.
    await page.addInitScript(`
      const asked = []
      navigator.credentials.get = ({ mediation, signal }) => {
        asked.push(mediation ?? 'button')
        document.body.dataset.asked = asked.join(' ')
        return new Promise((_, reject) => {
          // Browsers end a request by themselves, too.
          if (!mediation) reject(new DOMException('', asked.length > 2 ? 'AbortError' : 'NotAllowedError'))
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      }`)
    await page.goto(`${server.url}login.passkey`)
    const asked = (text: string) => page.locator(`[data-asked="${text}"]`).waitFor()
    await asked('conditional')
    for (const cycle of ['', ' button conditional']) {
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await asked(`conditional${cycle} button conditional`)
      await page.getByText('The passkey request was cancelled').waitFor()
    }
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-21 the rules are ticked while a password is typed, which is only once where the page can show it',
  async () => {
    const { page, close } = await opened('set-up.empty')
    const met = () => page.locator('.rules .met').evaluateAll(items => items.map(item => item.dataset.rule))
    await page.getByLabel('Password', { exact: true }).fill('abcdefg7')
    expect(await met()).toEqual(['require_lowercase', 'require_digit'])
    await page.getByLabel('Password', { exact: true }).fill('Ábcdefghijk!')
    expect(await met()).toEqual(['min_length', 'require_uppercase', 'require_lowercase', 'require_special'])
    expect(await page.locator('.rules .met .icon:visible').count()).toBe(4)
    expect(await page.locator('input[type=password]').count()).toBe(1)
    await close()

    const plain = await opened('set-up.refused', { javaScriptEnabled: false })
    expect(await plain.page.locator('input[type=password]:visible').count()).toBe(2)
    expect(await plain.page.locator('.rules .failed').count()).toBe(2)
    await plain.close()
  },
  120_000,
)

testInChromium(
  'PAG-23 the set-up page shows its button without scrolling',
  async () => {
    const { page, close } = await opened('set-up.empty', { viewport: { width: 1280, height: 800 } })
    const { y = 0, height = 0 } =
      (await page.getByRole('button', { name: 'Create account' }).boundingBox()) ?? {}
    expect(y + height).toBeLessThan(800)
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-27 a throttled form counts down in its button, and is open again when the wait is over',
  async () => {
    const { page, close } = await opened('login.empty')
    await page.clock.install({ time: new Date('2026-11-20T12:00:00Z') })
    await page.clock.pauseAt(new Date('2026-11-20T13:00:00Z'))
    await page.goto(`${server.url}login.throttled`)
    const button = page.locator('button.primary')
    expect(await button.isDisabled()).toBe(true)
    expect(await button.getAttribute('data-left')).toBe('0:16')
    await page.clock.runFor(10_000)
    expect(await button.getAttribute('data-left')).toBe('0:06')
    expect(await page.getByRole('alert').isVisible()).toBe(true)
    await page.clock.runFor(6_500)
    expect(await button.isEnabled()).toBe(true)
    expect(await page.getByRole('alert').isVisible()).toBe(false)
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-72 a form is sent once, and again after ten seconds or when its load was stopped',
  async () => {
    const { page, close } = await opened('login.empty')
    await page.clock.install({ time: new Date('2026-11-20T12:00:00Z') })
    await page.clock.pauseAt(new Date('2026-11-20T13:00:00Z'))
    await page.goto(`${server.url}login.empty`)
    await page.getByLabel('Username or email').fill('ada')
    await page.getByLabel('Password', { exact: true }).fill('secret')
    const form = page.locator('form[action="/oauth/login"]')
    const send = () => form.getByRole('button', { name: 'Sign in', exact: true }).dispatchEvent('click')
    const isSent = () => Promise.all([page.waitForRequest('**/oauth/login'), send()])
    // The answer leads to an app, so the page stays.
    let sent = 0
    await page.route('**/oauth/login', route => {
      sent++
      return route.fulfill({ status: 303, headers: { location: 'com.example.app:/callback' } })
    })
    await isSent()
    await page.clock.runFor(9_900)
    await send()
    expect([await form.getAttribute('aria-busy'), sent]).toEqual(['true', 1])
    await page.clock.runFor(100)
    // No answer comes until the person stops the load.
    await page.unroute('**/oauth/login')
    await page.route('**/oauth/login', () => {})
    await page.clock.resume()
    const stopping = 'navigation.addEventListener("navigate", () => setTimeout(stop, 300), { once: true })'
    await page.evaluate(`void ${stopping}`)
    await isSent()
    await page.locator('form[action="/oauth/login"]:not([aria-busy])').waitFor()
    await isSent()
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-72 a form that replaces a running load stays busy',
  async () => {
    const { page, close } = await opened('login.empty')
    await page.route(/\/(?:login|language)$/, () => {})
    const told = page.waitForEvent('console')
    await page.evaluate(`{
      const login = document.querySelector('form[action="/oauth/login"]')
      const language = document.querySelector('.languages')
      const acts = [() => language.requestSubmit(), () => console.log(language.ariaBusy)]
      navigation.addEventListener('navigate', () => setTimeout(acts.shift()))
      login.noValidate = true
      setTimeout(() => login.requestSubmit())
    }`)
    expect((await told).text()).toBe('true')
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-34 the link of a refused page counts down, and works when the wait is over',
  async () => {
    const { page, close } = await opened('login.empty')
    await page.clock.install({ time: new Date('2026-11-20T12:00:00Z') })
    await page.clock.pauseAt(new Date('2026-11-20T13:00:00Z'))
    await page.goto(`${server.url}error.throttled`)
    const link = page.getByRole('link', { name: 'Try again' })
    const state = async () => [await link.getAttribute('data-left'), await link.getAttribute('aria-disabled')]
    expect(await state()).toEqual(['1:00', 'true'])
    await page.clock.runFor(60_500)
    expect(await state()).toEqual([null, 'false'])
    await Promise.all([page.waitForNavigation(), link.click()])
    expect(page.url()).toBe(`${server.url}error.throttled`)
    await close()
  },
  120_000,
)

testInChromium(
  'PAG-51 commands are copied as they stand, by keyboard too; the key of an app is copied without its spaces',
  async () => {
    const { page, close } = await opened('account.next-tenant', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const copied = () => page.evaluate(() => navigator.clipboard.readText())
    await page.locator('[data-copy=next-client]').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await copied()).toBe(
      'gatehouse client create NAME --kind web --redirect URL --organization northwind',
    )
    await page.goto(`${server.url}account.next-mail`)
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await copied()).toBe('GATEHOUSE_SMTP_URL=smtps://USER:PASSWORD@HOST\nGATEHOUSE_MAIL_FROM=ADDRESS')
    await page.goto(`${server.url}enrol-totp.usual`)
    const key = (await page.locator('#key code').textContent()) ?? ''
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(key).toMatch(/^\w{4} \w{4} /)
    expect(await copied()).toBe(key.replaceAll(' ', ''))
    await close()

    const plain = await opened('account.next', { javaScriptEnabled: false })
    expect(await plain.page.locator('.command code').count()).toBe(7)
    expect(await plain.page.locator('.command button:visible').count()).toBe(0)
    await plain.close()
  },
  120_000,
)

testInChromium(
  'the panels of an account page have one distance from border to content on a wide screen',
  async () => {
    const { page, close } = await openPage({ viewport: { width: 1280, height: 900 } })
    for (const name of [
      'account.usual',
      'account-profile.usual',
      'account-security.usual',
      'account-data.usual',
    ]) {
      await page.goto(`${server.url}${name}`)
      const paddings = await page
        .locator('.panel')
        .evaluateAll(panels => panels.map(panel => getComputedStyle(panel).paddingTop))
      expect([name, new Set(paddings)]).toEqual([name, new Set(['28px'])])
    }
    await close()
  },
  120_000,
)
