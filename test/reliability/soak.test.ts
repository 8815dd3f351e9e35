import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openMetrics } from '#src/lib/metrics.ts'
import { EVENT_LOOP_HOLD, watchEventLoop } from '#src/operations/event-loop.ts'
import { answerOf, type Browser, openBrowser } from '#test/support/browser.ts'
import { serveExecutable } from '#test/support/executable.ts'
import { addClient, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { bearer, redeem, refresh } from '#test/support/tokens.ts'
import { figure, LONG } from './faults.ts'
import { percentile } from './percentile.ts'

/** Length of the test in seconds. The long form takes ten minutes. `SOAK=86400` runs for a day. */
const SECONDS = Number(process.env.SOAK ?? (LONG ? 600 : 10))
const SLICES = 10
const PEOPLE = 16
/** Each round is the work of one login: a code, tokens, two rotations, userinfo. */
const ROUNDS_PER_SECOND = 50

interface Slice {
  /** Memory in MiB at the end of the slice. */
  rss: number
  descriptors: number
  p99: number
  /**
   * Longest hold of the event loop in the last minute of the slice, in seconds, beyond the longest hold in
   * this process. A pause of the machine holds both.
   */
  hold: number
}

const residentOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024

const holdIn = (metrics: string): number =>
  Number(new RegExp(`^${EVENT_LOOP_HOLD} (\\S+)$`, 'm').exec(metrics)?.[1])

test(
  'R-08 under steady load, memory, descriptors and the log do not grow',
  async () => {
    await using server = await serveExecutable({ GATEHOUSE_LOG_LEVEL: 'warn' })
    const app = remote(server)
    const client = await addClient(app, 'shop', { client_id: 'shop' })
    const browsers: Browser[] = []
    for (let n = 0; n < PEOPLE; n++) {
      const browser = openBrowser(app)
      await addUser(app, `user-${n}`)
      await logInTo(browser, 'shop', `user-${n}`)
      browsers.push(browser)
    }
    let times: number[] = []
    let rounds = 0
    const own = openMetrics()
    const stopWatch = watchEventLoop(own)
    const began = performance.now()
    const ends = began + SECONDS * 1_000
    const round = async (browser: Browser): Promise<void> => {
      const started = performance.now()
      const { code = '' } = answerOf(await browser.get(authorizeUrl('shop')))
      let { body } = await redeem(app, client, code)
      for (let n = 0; n < 2; n++) body = (await refresh(app, client, body.refresh_token)).body
      const answer = await app.call('/oauth/userinfo', { headers: bearer(body.access_token) })
      expect(answer.status).toBe(200)
      await answer.text()
      const revoked = await app.call('/oauth/revoke', {
        method: 'POST',
        body: new URLSearchParams({
          token: body.refresh_token,
          client_id: 'shop',
          client_secret: client.client_secret,
        }),
      })
      expect(revoked.status).toBe(200)
      times.push(performance.now() - started)
      rounds++
    }
    const keepOn = async (browser: Browser, n: number): Promise<void> => {
      const every = (PEOPLE / ROUNDS_PER_SECOND) * 1_000
      for (let at = began + (every * n) / PEOPLE; at < ends; at += every) {
        await Bun.sleep(Math.max(0, at - performance.now()))
        await round(browser)
      }
    }
    const slices: Slice[] = []
    let log = 0
    const look = async (): Promise<void> => {
      for (let n = 1; n <= SLICES; n++) {
        const until = began + (SECONDS * 1_000 * n) / SLICES
        while (performance.now() < until) {
          log = Math.max(log, statSync(join(server.data_dir, 'gatehouse.db-wal')).size)
          await Bun.sleep(100)
        }
        slices.push({
          rss: residentOf(server.pid),
          descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
          p99: percentile(times, 0.99),
          hold: holdIn(await (await fetch(`${server.url}/metrics`)).text()) - holdIn(own.render()),
        })
        times = []
      }
    }
    await Promise.all([look(), ...browsers.map(keepOn)])
    stopWatch()
    const [middle, last] = [slices[SLICES / 2 - 1] as Slice, slices.at(-1) as Slice]
    const descriptors = slices.map(slice => slice.descriptors)
    // After a pause of the machine, all clients can send requests at once. Each client then has its own
    // connection.
    expect(
      Math.max(...descriptors.slice(SLICES / 2)) - Math.max(...descriptors.slice(0, SLICES / 2)),
    ).toBeLessThan(PEOPLE + 8)
    const hold = Math.max(0, ...slices.map(slice => slice.hold))
    expect(hold).toBeLessThan(1)
    expect(log).toBeLessThan(64 * 2 ** 20)
    if (LONG) expect(last.rss / middle.rss).toBeLessThan(1.1)
    const mib = slices.map(({ rss }) => Math.round(rss)).join(' ')
    figure(
      'R-08',
      `${SECONDS} s, ${Math.round(rounds / SECONDS)} rounds a second: resident MiB ${mib} (second half ${((last.rss / middle.rss - 1) * 100).toFixed(1)} %), ` +
        `descriptors ${Math.min(...descriptors)}–${Math.max(...descriptors)}, log at most ${Math.round(log / 2 ** 20)} MiB, event loop held for at most ${Math.round(hold * 1_000)} ms longer than here, p99 of a round ${slices[1]?.p99.toFixed(0)} ms early, ${last.p99.toFixed(0)} ms late`,
    )
  },
  (SECONDS + 60) * 1_000,
)
