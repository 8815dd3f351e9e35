/** Tests scripts and texts of the console in a browser. */
import { afterAll, afterEach, beforeEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { axeFindings } from '#test/support/axe.ts'
import { closeChromium, type Opened, openPage, testInChromium } from '#test/support/chromium.ts'
import { enterConsole, serveConsole } from '#test/support/console.ts'

let served: Awaited<ReturnType<typeof serveConsole>>
let opened: Opened
let page: Page

beforeEach(async () => {
  served = await serveConsole()
  opened = await openPage({ viewport: { width: 1280, height: 900 } })
  page = opened.page
})
afterEach(async () => {
  await opened.close()
  await served.stop()
})
afterAll(closeChromium)

testInChromium(
  'CON-21 the script of a screen is loaded when it is first opened; without it the page is offered again',
  async () => {
    const loaded: string[] = []
    page.on('request', request => {
      if (request.url().endsWith('.js')) loaded.push(request.url())
    })
    const links = page.getByRole('navigation')
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
    await enterConsole(page, served.url)
    await heading('Overview')
    const first = loaded.length
    await links.getByRole('link', { name: 'Webhooks' }).click()
    await heading('Webhooks')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
    const second = loaded.length
    expect(second).toBeGreaterThan(first)
    await links.getByRole('link', { name: 'Overview' }).click()
    await heading('Overview')
    await links.getByRole('link', { name: 'Webhooks' }).click()
    await heading('Webhooks')
    expect(loaded.length).toBe(second)

    await page.route('**/*.js', route => route.abort())
    await links.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('alert').getByText('This could not be loaded').waitFor()
    await page.unroute('**/*.js')
    await page.getByRole('button', { name: 'Try again' }).click()
    await heading('Settings')
  },
  120_000,
)

const languages = {
  ar: ['نظرة عامة', 'المستخدمون', '4 من 4', 'rtl'],
  de: ['Übersicht', 'Benutzer', '4 von 4', 'ltr'],
  es: ['Resumen', 'Usuarios', '4 de 4', 'ltr'],
  fr: ['Vue d’ensemble', 'Utilisateurs', '4 sur 4', 'ltr'],
  it: ['Panoramica', 'Utenti', '4 di 4', 'ltr'],
  ja: ['概要', 'ユーザー', '4 件中 4 件', 'ltr'],
  pl: ['Przegląd', 'Użytkownicy', '4 z 4', 'ltr'],
  pt: ['Resumo', 'Usuários', '4 de 4', 'ltr'],
} as const

for (const [language, [overview, users, shown, dir]] of Object.entries(languages))
  testInChromium(
    `CON-22 the console is shown in the language of the browser, ${language}`,
    async () => {
      const other = await openPage({ viewport: { width: 320, height: 800 }, locale: language })
      await enterConsole(other.page, served.url)
      await other.page.getByRole('heading', { level: 1, name: overview }).waitFor()
      expect(
        await other.page.evaluate('[document.documentElement.lang, document.documentElement.dir]'),
      ).toEqual([language, dir])
      for (const path of ['/users', '/clients/shop', '/settings']) {
        await other.page.goto(`${served.url}/console${path}`)
        await other.page.locator('h1').waitFor()
        await other.page.locator('.loading').first().waitFor({ state: 'detached' })
        const over = await other.page.evaluate(
          'Math.max(0, document.documentElement.scrollWidth - innerWidth)',
        )
        expect([path, over, await axeFindings(other.page)]).toEqual([path, 0, []])
        if (path === '/clients/shop') {
          const code = other.page.locator('pre').first()
          expect(await code.evaluate(pre => getComputedStyle(pre).direction)).toBe('ltr')
        }
        if (path !== '/users') continue
        await other.page.getByRole('heading', { level: 1, name: users }).waitFor()
        await other.page.getByText(shown).waitFor()
      }
      await other.close()
    },
    120_000,
  )

testInChromium(
  'CON-10 a screen is printed without controls, in dark text',
  async () => {
    await enterConsole(page, served.url, '/console/users')
    await page.getByRole('link', { name: /grace/ }).waitFor()
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    for (const part of ['.bar', '.actions', '.filters'])
      expect([part, await page.locator(part).isVisible()]).toEqual([part, false])
    const name = page.getByRole('link', { name: /grace/ }).locator('strong')
    expect(await name.evaluate(each => getComputedStyle(each).color)).toBe('rgb(0, 0, 0)')
  },
  120_000,
)

testInChromium(
  'CON-10 forced colours show the current item of the menu, a form, tabs and the search, and the dots of events',
  async () => {
    /** True if the area looks different after the change of the element. */
    const isSeen = async (element: string, change: (each: Element) => void, area = element) => {
      const look = () => page.locator(area).first().screenshot()
      await page.locator(element).first().waitFor({ state: 'attached' })
      const before = await look()
      await page.locator(element).first().evaluate(change)
      return !before.equals(await look())
    }
    const unmark = (each: Element) => {
      for (const name of ['aria-current', 'aria-selected']) each.removeAttribute(name)
    }
    const hide = (each: Element) => {
      if (each instanceof HTMLElement) each.style.visibility = 'hidden'
    }
    await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
    await enterConsole(page, served.url, '/console/organizations/default')
    expect(await isSeen('#tab-names', unmark)).toBe(true)
    expect(await isSeen('.menu nav [aria-current]', unmark, '.menu nav [href$=organizations]')).toBe(true)
    await page.keyboard.press('Control+k')
    expect(await isSeen('#found-0', unmark)).toBe(true)
    await page.goto(`${served.url}/console/users`)
    expect(await isSeen('.tabs [aria-current]', unmark, '.tabs')).toBe(true)
    await page.goto(`${served.url}/console/events`)
    expect(await isSeen('.toggle .dot', hide, '.toggle')).toBe(true)
    expect(await isSeen('li.event .dot', hide, 'li.event')).toBe(true)
  },
  120_000,
)

testInChromium(
  'CON-22 the button of the search takes one line in each language',
  async () => {
    for (const locale of Object.keys(languages)) {
      const other = await openPage({ viewport: { width: 1280, height: 900 }, locale })
      await enterConsole(other.page, served.url)
      await other.page.locator('.find').waitFor()
      const lines = await other.page.locator('.find span, .find kbd').evaluateAll(parts =>
        parts.map(part => {
          const text = new Range()
          text.selectNodeContents(part)
          return new Set([...text.getClientRects()].map(({ top }) => top)).size
        }),
      )
      expect([locale, lines]).toEqual([locale, [1, 1]])
      await other.close()
    }
  },
  300_000,
)
