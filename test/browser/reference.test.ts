import { afterAll, describe, expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { axeFindings } from '#test/support/axe.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'

const app = await startApp()
afterAll(closeChromium)
const answer = await app.call('/api/v1/docs')
const html = await answer.text()

test('API-26 the API reference is sandboxed, has no script and loads nothing', async () => {
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-security-policy')).toMatch(
    /^sandbox; default-src 'none'; style-src 'sha256-[\w+/]{43}='; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  )
  expect(answer.headers.getSetCookie()).toEqual([])
  expect(html).not.toMatch(/<script|<form|<iframe|javascript:|src=| on\w+=|https?:[^<"]*\.(?:css|js)/)
  expect(await (await app.call('/api/v1/docs', { headers: { cookie: 'x=1' } })).text()).toBe(html)
})

test('API-26 the API reference shows each operation with its permission, and each schema', () => {
  for (const { id, permission, summary } of app.routes) {
    const article = html.slice(html.indexOf(`<article id="${id}">`)).split('</article>')[0]
    expect(article).toContain(`<code>${permission}</code>`)
    expect(article).toContain(summary)
  }
  for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(` id="${id}"`)
})

// The test uses only two combinations, because a run of axe takes ten seconds on this page.
describe.each([
  ['light', 390],
  ['dark', 1280],
] as const)('%s, at %i pixels', (colorScheme, width) => {
  testInChromium(
    'API-26 the API reference has its style, fits, and axe finds nothing',
    async () => {
      // The page is served without its Content-Security-Policy, because axe needs timers, and timers do not
      // run under `sandbox`.
      const open = () => new Response(html, { headers: { 'content-type': 'text/html' } })
      const fetch = ({ url }: Request) => (url.endsWith('/docs') ? app.call('/api/v1/docs') : open())
      await using server = Bun.serve({ port: 0, fetch })
      const { page, close } = await openPage({ viewport: { width, height: 900 }, colorScheme })
      await page.goto(`${server.url}docs`)
      expect(await page.evaluate('getComputedStyle(document.body).marginTop')).toBe('0px')
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      await page.goto(server.url.href)
      expect(await axeFindings(page)).toEqual([])
      await close()
    },
    300_000,
  )
})
