// Measures the first paint of the console in Chromium, from source, with a warm and a cold cache.
//   bun test/support/console-paint.ts [RUNS]
// Measures two durations in each run and prints the median of each, in milliseconds. Both durations end when
// the page first shows something. The first duration begins when the address is opened, so it includes the
// redirect of the login. The second duration begins with the last navigation. Prints the load average too,
// because the times are comparable only on a quiet machine.
import { loadavg } from 'node:os'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { closeChromium, openPage } from './chromium.ts'
import { enterConsole, serveConsole } from './console.ts'
import { temporaryDatabase } from './store.ts'

const runs = Number(process.argv[2] ?? 9)
const store = await openSqlite({ path: await temporaryDatabase() })
const served = await serveConsole({ store })
const { page } = await openPage({ viewport: { width: 1280, height: 860 } })
const browser = await page.context().newCDPSession(page)
await enterConsole(page, served.url)
await page.locator('.chart').waitFor()

const median = (values: number[]): number => Math.round(values.toSorted((a, b) => a - b)[runs >> 1] ?? 0)

for (const cache of ['warm', 'cold']) {
  const painted: { all: number; last: number }[] = []
  for (let run = 0; run < runs; run++) {
    if (cache === 'cold') await browser.send('Network.clearBrowserCache')
    await page.goto('about:blank')
    const begun = Date.now()
    await page.goto(`${served.url}/console`)
    await page.locator('.chart').waitFor()
    const [last, origin] = await page.evaluate(() => [
      performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
      performance.timeOrigin,
    ])
    painted.push({ all: (origin ?? 0) + (last ?? 0) - begun, last: last ?? 0 })
  }
  const [all, last] = [median(painted.map(({ all }) => all)), median(painted.map(({ last }) => last))]
  console.log(`${cache} cache: ${all} ms from the address, ${last} ms from the last navigation`)
}
console.log(`load average ${loadavg()[0]?.toFixed(1)}`)
await closeChromium()
await served.stop()
await store.close()
