// Takes screenshots of every screen of the console: phone and desktop, light and dark, right to left. Makes
// contact sheets of the screenshots.
//   bun test/support/console-preview.ts FOLDER [PATTERN]
import { mkdirSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { closeChromium, openPage } from './chromium.ts'
import { enterConsole, serveConsole } from './console.ts'
import { fillConsole } from './console-screens.ts'
import { temporaryDatabase } from './store.ts'

const [folder = '', pattern = ''] = process.argv.slice(2)
if (folder === '') throw new Error('usage: bun test/support/console-preview.ts FOLDER [PATTERN]')
mkdirSync(folder, { recursive: true })

const looks = [
  { look: 'phone-light', width: 390, height: 844, colorScheme: 'light', locale: 'en' },
  { look: 'phone-dark', width: 390, height: 844, colorScheme: 'dark', locale: 'en' },
  { look: 'desktop-light', width: 1280, height: 860, colorScheme: 'light', locale: 'en' },
  { look: 'desktop-dark', width: 1280, height: 860, colorScheme: 'dark', locale: 'en' },
  { look: 'ar', width: 1280, height: 860, colorScheme: 'light', locale: 'ar' },
  { look: 'ja', width: 1280, height: 860, colorScheme: 'light', locale: 'ja' },
  { look: 'ar-phone', width: 390, height: 844, colorScheme: 'dark', locale: 'ar' },
  { look: 'de-phone', width: 320, height: 720, colorScheme: 'light', locale: 'de' },
] as const

/** Returns the name of a file for a screen: its path without ids. */
const nameOf = (path: string): string =>
  path
    .replace(/\/[a-z]+_[\da-f-]+/, '/one')
    .replaceAll('/', '-')
    .slice(1) || 'overview'

const store = await openSqlite({ path: await temporaryDatabase() })
const served = await serveConsole({ store })
const paths = await fillConsole(served.app)
for (const { look, width, height, ...context } of looks) {
  const wanted = paths.filter(path => `${nameOf(path)}.${look}`.match(pattern))
  if (wanted.length === 0) continue
  const { page, close } = await openPage({ viewport: { width, height }, reducedMotion: 'reduce', ...context })
  await enterConsole(page, served.url)
  for (const path of wanted) {
    await page.goto(`${served.url}/console${path}`)
    await page.locator('h1').waitFor()
    await page.waitForLoadState('networkidle')
    await page.screenshot({ path: join(folder, `${nameOf(path)}.${look}.png`), fullPage: true })
  }
  await close()
}

/** Writes a contact sheet of all screens. */
const sheet = async (look: string): Promise<void> => {
  const files = readdirSync(folder).filter(file => file.endsWith(`.${look}.png`) && !file.startsWith('sheet'))
  if (files.length === 0) return
  const { page, close } = await openPage({ viewport: { width: 2000, height: 1000 } })
  const figures = await Promise.all(
    files.map(async file => {
      const data = (await Bun.file(join(folder, file)).bytes()).toBase64()
      return `<figure><img src="data:image/png;base64,${data}"><figcaption>${basename(file)}</figcaption></figure>`
    }),
  )
  const style = `body{display:grid;grid-template-columns:repeat(${/phone/.test(look) ? 8 : 5},1fr);gap:12px;background:#888;font:14px sans-serif;margin:12px}figure{margin:0}img{width:100%;max-height:900px;object-fit:cover;object-position:top}`
  await page.setContent(`<style>${style}</style>${figures.join('')}`)
  await page.screenshot({ path: join(folder, `sheet.${look}.png`), fullPage: true })
  await close()
}
for (const { look } of looks) await sheet(look)
await closeChromium()
await served.stop()
await store.close()
