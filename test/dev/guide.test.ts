import { afterAll, expect, test } from 'bun:test'
import { guideSections } from '#src/guide/pages.ts'
import { startGatehouse } from '#src/testing/index.ts'
import { startApp } from '#test/support/app.ts'

const gatehouse = await startGatehouse()
afterAll(() => gatehouse.close())
const pages = guideSections.flatMap(section => section.pages)
const get = (path: string) => fetch(`${gatehouse.url}${path}`)

test('development mode shows every page, with a list that marks the current one', async () => {
  const index = await (await get('/guide')).text()
  for (const { subject, title, about } of pages) {
    expect(index).toContain(`<a href="/guide/${subject}">${title}</a><span>${Bun.escapeHTML(about)}</span>`)
    const answer = await get(`/guide/${subject}`)
    const html = await answer.text()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(html).toContain(`>${title}</h1>`)
    expect(html.match(/aria-current="page">[^<]*/g)).toEqual([`aria-current="page">${title}`])
    expect(html).not.toContain('<script')
  }
})

test('an unknown page is 404 with the list, without repeating its name', async () => {
  const answer = await get('/guide/%3Cnonsense%3E')
  const html = await answer.text()
  expect(answer.status).toBe(404)
  expect(html).toContain('<a href="/guide/install">')
  expect(html).not.toContain('nonsense')
})

test('every link of a page leads to an existing page, address or heading', async () => {
  const seen = new Map<string, string>()
  const read = async (path: string): Promise<string> => {
    const html = seen.get(path) ?? (await (await get(path)).text())
    seen.set(path, html)
    return html
  }
  for (const { subject } of pages)
    for (const [, href = ''] of (await read(`/guide/${subject}`)).matchAll(/href="(\/guide[^"]*)"/g)) {
      const [path = '', id] = href.split('#')
      const html = await read(path)
      expect([href, /<h1/.test(html), id === undefined || html.includes(`id="${id}"`)]).toEqual([
        href,
        true,
        true,
      ])
    }
})

test('its style comes from the server, and nothing else may be loaded', async () => {
  const answer = await get('/guide/keys')
  expect(answer.headers.get('content-security-policy')).toStartWith("default-src 'none'; style-src 'self';")
  const sheets = [...(await answer.text()).matchAll(/rel="stylesheet" href="([^"]+)"/g)].map(
    ([, href = '']) => href,
  )
  expect(sheets).toHaveLength(3)
  for (const sheet of sheets) expect((await get(sheet)).status).toBe(200)
})

test('production has no guide pages', async () => {
  const app = await startApp()
  for (const path of ['/guide', '/guide/keys']) expect((await app.call(path)).status).toBe(404)
})
