// Every page in every state, with sample data.
//   bun test/support/preview.ts                  serves them (`?theme=ember`, `?accent=2b8a3e`, `?dir=rtl`)
//   bun test/support/preview.ts FOLDER [PATTERN] writes screenshots: phone and desktop, light and dark, right to left, themes
import { chromium } from 'playwright-core'
import { accentAsset, accentUrl } from '#src/http/accent.ts'
import { asset } from '#src/http/assets.ts'
import { render } from '#src/http/pages.ts'
import { logos, samples } from './page-samples.ts'

const [folder, pattern = ''] = process.argv.slice(2)
const nameOf = (sample: (typeof samples)[number]) => `${sample.page}.${sample.state}`

const server = Bun.serve({
  port: folder ? 0 : 4400,
  fetch: async request => {
    const url = new URL(request.url)
    const sample = samples.find(candidate => url.pathname === `/${nameOf(candidate)}`)
    const logo = logos[url.pathname]
    if (logo) return new Response(logo, { headers: { 'content-type': 'image/svg+xml' } })
    if (!sample) return asset(url.pathname) ?? accentAsset(url.pathname) ?? index()
    const theme = url.searchParams.get('theme') ?? 'default'
    const accent = url.searchParams.get('accent')
    const sheets = accent ? [accentUrl(`#${accent}`)] : []
    const page = render(
      sample.page,
      { ...sample.data, brand: { ...sample.data.brand, theme, sheets } },
      { status: sample.status ?? 200 },
    )
    const html = await page.text()
    return new Response(url.searchParams.has('dir') ? html.replace('dir="ltr"', 'dir="rtl"') : html, page)
  },
})

const index = () =>
  new Response(samples.map(sample => `<p><a href="/${nameOf(sample)}">${nameOf(sample)}</a>`).join(''), {
    headers: { 'content-type': 'text/html' },
  })

const shoot = async (target: string): Promise<void> => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  })
  const looks = [
    { look: 'phone-light', width: 390, height: 844, colorScheme: 'light', query: '' },
    { look: 'phone-dark', width: 390, height: 844, colorScheme: 'dark', query: '' },
    { look: 'desktop-light', width: 1280, height: 860, colorScheme: 'light', query: '' },
    { look: 'desktop-dark', width: 1280, height: 860, colorScheme: 'dark', query: '' },
    { look: 'narrow', width: 320, height: 640, colorScheme: 'light', query: '' },
    { look: 'rtl', width: 1280, height: 860, colorScheme: 'light', query: '?dir=rtl' },
    { look: 'graphite', width: 900, height: 800, colorScheme: 'light', query: '?theme=graphite' },
    { look: 'evergreen', width: 900, height: 800, colorScheme: 'light', query: '?theme=evergreen' },
    { look: 'ember', width: 900, height: 800, colorScheme: 'dark', query: '?theme=ember' },
  ] as const
  for (const { look, width, height, colorScheme, query } of looks) {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme,
      javaScriptEnabled: false,
    })
    const page = await context.newPage()
    for (const name of samples.map(nameOf)) {
      if (!`${name}.${look}`.match(pattern)) continue
      await page.goto(`${server.url}${name}${query}`)
      await page.screenshot({ path: `${target}/${name}.${look}.png`, fullPage: true })
    }
    await context.close()
  }
  await browser.close()
  await server.stop()
}

if (folder) await shoot(folder)
else console.log(String(server.url))
