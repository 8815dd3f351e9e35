/** Checks every page, in every state, with axe: https://github.com/dequelabs/axe-core */
import { afterAll, expect } from 'bun:test'
import { start } from '#src/testing/start.ts'
import { axeFindings } from '#test/support/axe.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { names, servePages } from '#test/support/page-server.ts'

const samples = servePages()
const server = await start()
afterAll(async () => {
  await closeChromium()
  await samples.stop()
  await server.stop()
})

const pages = names.filter(name => !name.startsWith('mail.')).map(name => `${samples.url}${name}`)
const development = ['', 'mailbox', 'log', 'tools', 'callback?code=x', 'callback?error=access_denied'].map(
  path => `${server.url}/dev/${path}`,
)

const find = async (urls: readonly string[], colorScheme: 'light' | 'dark', width: number) => {
  const { page, close } = await openPage({ colorScheme, viewport: { width, height: 800 } })
  const found: string[] = []
  for (const url of urls) {
    await page.goto(url)
    for (const finding of await axeFindings(page)) found.push(`${new URL(url).pathname} ${finding}`)
  }
  await close()
  return found
}

// Two combinations suffice, because the rules of axe barely depend on the width. More combinations would take
// long, because axe takes most of the time of each page.
for (const [scheme, width] of [
  ['light', 390],
  ['dark', 1280],
] as const)
  testInChromium(
    `PAG-40 axe finds nothing on any page, ${scheme}, ${width} pixels wide`,
    async () => {
      expect(await find([...pages, ...development], scheme, width)).toEqual([])
    },
    300_000,
  )

testInChromium('PAG-40 axe runs: it finds a field without a name', async () => {
  const { page, close } = await openPage()
  await page.setContent('<!doctype html><html lang="en"><title>t</title><main><h1>t</h1><input></main>')
  expect(await axeFindings(page)).toEqual(['label: input'])
  await close()
})

testInChromium(
  'PAG-40 no page is wider than 320 pixels',
  async () => {
    const { page, close } = await openPage({ viewport: { width: 320, height: 640 } })
    const wide: string[] = []
    for (const url of [...pages, ...development]) {
      await page.goto(url)
      if ((await page.evaluate(() => document.documentElement.scrollWidth)) > 320) wide.push(url)
    }
    await close()
    expect(wide).toEqual([])
  },
  300_000,
)
