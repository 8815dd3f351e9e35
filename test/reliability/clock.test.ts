/**
 * Tests a server while the clock of the machine is changed. The preloaded library libfaketime changes the
 * clock.
 */
import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { testWith } from '#test/support/debian.ts'
import { gatehouse, serveExecutable } from '#test/support/executable.ts'
import { addClient, addUser, authorizeUrl, logInTo, PASSWORD } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { bearer, claimsOf, redeem, refresh } from '#test/support/tokens.ts'
import { figure } from './faults.ts'

const [name = 'faketime/libfaketimeMT.so.1'] = new Bun.Glob('*/faketime/libfaketimeMT.so.1').scanSync(
  '/usr/lib',
)
const library = join('/usr/lib', name)

const YEAR = 365 * 24 * 3600

testWith('faketime', library)(
  'R-07 the clock is set back, forward, by two years, and in the middle of a login',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gatehouse-clock-'))
    const data_dir = join(dir, 'data')
    mkdirSync(data_dir)
    const time = join(dir, 'time')
    let ahead = 0
    let steps = -1
    const step = (seconds: number): void => {
      ahead += seconds
      steps++
      // The server can read the file at any moment, so the file must never be empty.
      writeFileSync(`${time}.new`, `${ahead >= 0 ? '+' : ''}${ahead}\n`)
      renameSync(`${time}.new`, time)
    }
    const now = () => Date.now() / 1_000 + ahead
    step(0)
    await using server = await serveExecutable(
      {
        LD_PRELOAD: library,
        FAKETIME_TIMESTAMP_FILE: time,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
      data_dir,
    )
    const app = remote(server)
    await addUser(app, 'alice')
    const client = await addClient(app, 'shop', { client_id: 'shop', access_token_ttl: 600 })
    const browser = openBrowser(app)
    await logInTo(browser, 'shop', 'alice')
    /** Gets a code without a login page, because the browser is still signed in. */
    const code = async () => answerOf(await browser.get(authorizeUrl('shop'))).code
    const isGood = async (token: string) =>
      (await app.call('/oauth/userinfo', { headers: bearer(token) })).status === 200
    let tokens = (await redeem(app, client, (await code()) ?? '')).body
    const rotate = async () => {
      const asked = Math.floor(now())
      const { status, body } = await refresh(app, client, tokens.refresh_token)
      expect(status).toBe(200)
      const { iat, exp } = claimsOf(body.access_token)
      expect([body.expires_in, exp - iat]).toEqual([600, 600])
      expect(iat).toBeWithin(asked, now() + 1)
      tokens = body
      return body.access_token as string
    }

    // Steps of five seconds in either direction cause no refusal.
    for (const seconds of [5, -5, -5, 5]) {
      const token = tokens.access_token
      step(seconds)
      expect([await isGood(token), typeof (await code())]).toEqual([true, 'string'])
      await rotate()
    }

    // After a step of an hour, values with a lifetime of ten minutes have expired, but the session has not.
    // After the step back, a token that was issued between the two steps is not valid yet.
    const first = tokens.access_token
    step(3_600)
    expect(await isGood(first)).toBe(false)
    const later = await rotate()
    expect(await isGood(later)).toBe(true)
    step(-3_600)
    expect(await isGood(later)).toBe(false)
    expect(await isGood(await rotate())).toBe(true)
    step(-3_600)
    expect(await isGood(await rotate())).toBe(true)
    step(3_600)

    // The clock is changed in the middle of a login, while the password is hashed. If a step forward exceeds
    // the lifetime of the request, an error page is the correct answer.
    for (const seconds of [3_600, -3_600, -3_600, 3_600]) {
      const other = openBrowser(app)
      const page = await other.get(authorizeUrl('shop'))
      const answer = other.submit(page, { username: 'alice', password: PASSWORD }, '/oauth/login')
      step(seconds)
      const { status, location } = await answer
      if (status === 400) expect(seconds).toBeGreaterThan(0)
      else expect([status, location?.includes('code=')]).toEqual([302, true])
    }

    // Two years later everything with a lifetime has expired, and new logins work.
    step(2 * YEAR)
    expect(await isGood(tokens.access_token)).toBe(false)
    expect((await refresh(app, client, tokens.refresh_token)).status).toBe(400)
    expect((await browser.get(authorizeUrl('shop'))).heading).toBe('Sign in')
    const fresh = openBrowser(app)
    const { code: issued = '' } = await logInTo(fresh, 'shop', 'alice')
    tokens = (await redeem(app, client, issued)).body
    expect([tokens.expires_in, await isGood(tokens.access_token)]).toEqual([600, true])

    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(server.output()).not.toMatch(/"level":[56]0/)
    using db = new Database(join(data_dir, 'gatehouse.db'), { readonly: true })
    const column = (query: string) => db.query(query).values().flat() as string[]
    const logins = column('SELECT id FROM logins ORDER BY rowid')
    expect(logins).toEqual(logins.toSorted())
    const events = column('SELECT id FROM events ORDER BY seq')
    expect(new Set(events).size).toBe(events.length)
    expect(await gatehouse(['check'], { GATEHOUSE_DATA_DIR: data_dir })).toMatchObject({ code: 0 })
    figure(
      'R-07',
      `${steps} steps of 5 s to 2 years, 4 of them while a password was hashed: ${logins.length} logins in the order of their ids, ${events.length} events, no token good before or after its time`,
    )
    rmSync(dir, { recursive: true })
  },
  60_000,
)
