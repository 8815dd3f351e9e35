// Makes the pictures of the README: the console with a login page in front of it, light and dark.
//   bun test/support/picture.ts FOLDER
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { addCounts } from '#src/audit/statistics-store.ts'
import { DAY } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { captureMail } from '#src/mail/captured.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { closeChromium, openPage } from './chromium.ts'
import { enterConsole, serveConsole } from './console.ts'
import { fillConsole } from './console-screens.ts'
import { authorizeUrl } from './people.ts'
import { temporaryDatabase } from './store.ts'

const target = resolve(process.argv[2] ?? '.github')
// The overview shows findings about the folder in which the server runs. A new folder has no findings.
process.chdir(mkdtempSync(join(tmpdir(), 'picture-')))
mkdirSync('data', { mode: 0o700 })

const store = await openSqlite({ path: await temporaryDatabase() })
const served = await serveConsole({ store, mail: captureMail() })
await fillConsole(served.app)
// Approves all registrations. Otherwise the overview shows a next step, which moves the chart out of the
// picture.
const { body } = await served.app.admin('GET', '/registrations')
for (const { id } of body.data) await served.app.admin('POST', `/registrations/${id}/approve`)
await store.write(async tx => {
  for (let day = 1; day < 30; day++) {
    const wave = 170 + day * 6 + 60 * Math.sin(day / 2.2)
    const isWeekend = [0, 6].includes(new Date(Date.now() - (30 - day) * DAY).getUTCDay())
    const logins = Math.round(wave * (isWeekend ? 0.45 : 1))
    addCounts(tx, DEFAULT_ORGANIZATION, Date.now() - (30 - day) * DAY, {
      logins,
      failed_logins: Math.round(logins * (day === 21 ? 0.4 : 0.06)),
      new_users: Math.round(logins / 40),
      active_users: logins,
      daily_users: logins,
      tokens: logins * 9,
    })
  }
})
await store.write(async tx =>
  addCounts(tx, DEFAULT_ORGANIZATION, Date.now(), { logins: 143, failed_logins: 9, daily_users: 121 }),
)

/** Returns the pictures of the overview and of a login page as data URIs. */
const shoot = async (colorScheme: 'light' | 'dark'): Promise<string[]> => {
  const looks = [
    { width: 1180, height: 780 },
    { width: 360, height: 600 },
  ]
  const pictures: string[] = []
  for (const viewport of looks) {
    const { page, close } = await openPage({ viewport, colorScheme, reducedMotion: 'reduce' })
    if (pictures.length > 0) await page.goto(`${served.url}${authorizeUrl('shop')}`)
    else await enterConsole(page, served.url)
    await page.waitForLoadState('networkidle')
    pictures.push(`data:image/png;base64,${(await page.screenshot()).toString('base64')}`)
    await close()
  }
  return pictures
}

for (const colorScheme of ['light', 'dark'] as const) {
  const [wide, narrow] = await shoot(colorScheme)
  const { page, close } = await openPage({ viewport: { width: 1340, height: 860 } })
  const line = colorScheme === 'light' ? '#d8dbe4' : '#2c303c'
  const style = `body{margin:0}img{position:absolute;border:1px solid ${line};border-radius:14px;box-shadow:0 20px 50px -20px rgb(0 0 0/35%)}`
  await page.setContent(
    `<style>${style}</style><img src="${wide}" style="left:8px;top:8px"><img src="${narrow}" style="right:8px;bottom:10px">`,
  )
  await page.screenshot({ path: join(target, `console-${colorScheme}.png`), omitBackground: true })
  await close()
}
await closeChromium()
await served.stop()
await store.close()
