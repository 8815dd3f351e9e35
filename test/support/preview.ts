// Shows every page in every state and every mail, with sample data.
//   bun test/support/preview.ts                  serves them (`?theme=ember`, `?accent=2b8a3e`, `?locale=ar`)
//   bun test/support/preview.ts FOLDER [PATTERN] writes screenshots in each form
import { chromium } from 'playwright-core'
import { names, servePages } from './page-server.ts'

const [folder, pattern = ''] = process.argv.slice(2)
const server = servePages(folder ? 0 : 4400)

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
    { look: 'ar', width: 1280, height: 860, colorScheme: 'light', query: '?locale=ar' },
    { look: 'ar-phone', width: 390, height: 844, colorScheme: 'light', query: '?locale=ar' },
    { look: 'ar-dark', width: 390, height: 844, colorScheme: 'dark', query: '?locale=ar' },
    { look: 'de', width: 390, height: 844, colorScheme: 'light', query: '?locale=de' },
    { look: 'ja', width: 1280, height: 860, colorScheme: 'light', query: '?locale=ja' },
    { look: 'ja-phone', width: 390, height: 844, colorScheme: 'light', query: '?locale=ja' },
    { look: 'graphite', width: 900, height: 800, colorScheme: 'light', query: '?theme=graphite' },
    { look: 'evergreen', width: 900, height: 800, colorScheme: 'light', query: '?theme=evergreen' },
    { look: 'ember', width: 900, height: 800, colorScheme: 'dark', query: '?theme=ember' },
  ] as const
  for (const { look, width, height, colorScheme, query } of looks) {
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme,
      // Passkeys need scripts. Scripts are off only in the narrow form.
      javaScriptEnabled: look !== 'narrow',
    })
    const page = await context.newPage()
    for (const name of names) {
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
