import { expect, test } from 'bun:test'
import { listSignIns } from '#src/account/store.ts'
import { record } from '#src/audit/record.ts'
import type { EventType } from '#src/audit/types.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { CONSOLE_CLIENT, type UserId } from '#src/lib/ids.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { codeOf, enrolTotp } from '#test/support/factors.ts'
import { addClient, addUser, signIn } from '#test/support/people.ts'
import { hearStatements, plansOf } from '#test/support/statements.ts'
import { freshStore } from '#test/support/store.ts'
import { grantTokens } from '#test/support/tokens.ts'

const app = await startApp()
const shop = await addClient(app, 'shop', { name: 'The Shop' })
let made = 0

const signedIn = async () => {
  const user = await addUser(app, `person-${++made}`)
  const browser = openBrowser(app, {
    headers: { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Firefox/140.0' },
  })
  await signIn(browser, await browser.get('/account'), user.username)
  return { user, browser }
}

const entriesOf = (html: string): string[] =>
  [
    ...html.matchAll(/<li>.*?<p class="session-name(?: failed)?">(.*?)<\/p>\s*<p class="parts">(.*?)<\/p>/gs),
  ].map(([, name = '', parts = '']) =>
    `${name} ${parts}`
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  )

const history = async (browser: Browser, url = '/account/history') => {
  const page = await browser.get(url)
  expect([page.status, page.heading]).toEqual([200, 'Sign-ins'])
  const next = /href="(\/account\/history\?cursor=[^"]*)"/.exec(page.html)?.[1]
  return { entries: entriesOf(page.html), next }
}

test('PEO-31 the sign-ins of the user are listed: application, browser, place, method, and failed attempts', async () => {
  const { user, browser } = await signedIn()
  app.clock.advance(MINUTE)
  await grantTokens(app, shop, user)
  app.clock.advance(MINUTE)
  const stranger = openBrowser(app, { ip: '203.0.113.9' })
  await signIn(stranger, await stranger.get('/account'), user.username, 'wrong')
  const other = await signedIn()
  const { entries, next } = await history(browser)
  expect(next).toBeUndefined()
  expect(entries).toEqual([
    'Failed sign-in Unknown device 203.0.113.9',
    expect.stringMatching(/^The Shop .*Password$/),
    expect.stringMatching(/^Your account Firefox on Windows .*Password$/),
  ])
  expect((await history(other.browser)).entries).toHaveLength(1)
})

test('PEO-31 a sign-in that stopped at the second factor is listed until it is completed', async () => {
  const { user, browser } = await signedIn()
  const { key } = await enrolTotp(
    app,
    browser,
    await browser.follow(await browser.get('/account/security/add')),
  )
  app.clock.advance(MINUTE)
  const thief = openBrowser(app, { ip: '203.0.113.9' })
  await signIn(thief, await thief.get('/account'), user.username)
  app.clock.advance(MINUTE)
  const own = openBrowser(app, { ip: '203.0.113.10' })
  const step = await signIn(own, await own.get('/account'), user.username)
  const unfinished = (ip: string) => `Sign-in not completed Unknown device ${ip} Password`
  const first = expect.stringMatching(/^Your account Firefox on Windows .*Password$/)
  expect((await history(browser)).entries).toEqual([
    unfinished('203.0.113.10'),
    unfinished('203.0.113.9'),
    first,
  ])
  await own.follow(await own.submit(step, { code: codeOf(app, key) }, '/oauth/second-factor'))
  expect((await history(browser)).entries).toEqual([
    expect.stringMatching(/^Your account Unknown device 203.0.113.10 Password One-time code$/),
    unfinished('203.0.113.9'),
    first,
  ])
})

test('PEO-31 a sign-in is completed only by the same browser at the same address, within an hour', async () => {
  const { user, browser } = await signedIn()
  const { key } = await enrolTotp(
    app,
    browser,
    await browser.follow(await browser.get('/account/security/add')),
  )
  const linux = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' }
  const begin = async (headers: Record<string, string> = {}) => {
    const own = openBrowser(app, { ip: '203.0.113.10', headers })
    return { own, step: await signIn(own, await own.get('/account'), user.username) }
  }
  await begin()
  app.clock.advance(HOUR + 1)
  await begin(linux)
  app.clock.advance(MINUTE)
  const { own, step } = await begin()
  await own.follow(await own.submit(step, { code: codeOf(app, key) }, '/oauth/second-factor'))
  expect((await history(browser)).entries).toEqual([
    'Your account Unknown device 203.0.113.10 Password One-time code',
    'Sign-in not completed Firefox on Linux 203.0.113.10 Password',
    'Sign-in not completed Unknown device 203.0.113.10 Password',
    expect.stringMatching(/^Your account Firefox on Windows .*Password$/),
  ])
})

/** Writes events of these types about the user, in this order. */
const write = (user: Json, types: EventType[], metadata: Record<string, unknown> = {}) =>
  app.context.store.write(async tx => {
    for (const type of types)
      await record(app.context, tx, {
        type,
        actor: { id: user.id, email: user.email },
        target_id: user.id,
        target_type: 'user',
        organization_id: 'org_default',
        client_info: { ip_address: '198.51.100.1', user_agent: '' },
        subject_id: user.id,
        metadata,
      })
  })

test('PEO-31 a sign-in at the console has its name, one at a client that was deleted the client’s id', async () => {
  const { user, browser } = await signedIn()
  app.clock.advance(MINUTE)
  await grantTokens(app, await addClient(app, 'closed-down'), user)
  expect((await app.admin('DELETE', '/clients/closed-down')).status).toBe(204)
  app.clock.advance(MINUTE)
  await write(user, ['user.login'], { client_id: CONSOLE_CLIENT })
  const { entries } = await history(browser)
  expect([entries[0], entries[1]]).toEqual([
    expect.stringMatching(/^Gatehouse console /),
    expect.stringMatching(/^closed-down /),
  ])
})

test('PEO-31 pages follow each other without a gap, and a cursor is valid only for its user', async () => {
  const { user, browser } = await signedIn()
  app.clock.advance(MINUTE)
  await write(user, Array(45).fill('user.login'))
  const first = await history(browser)
  const second = await history(browser, first.next)
  const third = await history(browser, second.next)
  expect([first, second, third].map(({ entries }) => entries.length)).toEqual([20, 20, 6])
  expect(third.next).toBeUndefined()
  expect(third.entries.at(-1)).toStartWith('Your account Firefox on Windows')
  const other = await signedIn()
  for (const url of [first.next ?? '', '/account/history?cursor=', '/account/history?cursor=x.y'])
    expect((await other.browser.get(url)).status).toBe(400)
})

test('PEO-31 a page reads a bounded part of the log, and the next one continues there', async () => {
  const { user } = await signedIn()
  app.clock.advance(MINUTE)
  await write(user, Array(500).fill('user.updated'))
  const { store } = app.context
  const first = await store.read(q => listSignIns(q, user.id as UserId, undefined, 20))
  expect(first.rows).toEqual([])
  const second = await store.read(q => listSignIns(q, user.id as UserId, first.next, 20))
  expect(second).toMatchObject({ rows: [{ type: 'user.login' }], next: undefined })
})

test('PEO-31 unfinished sign-ins are compared with events of the user, not with all events of an address', async () => {
  const store = await freshStore()
  const statements = new Set<string>()
  const stopHearing = hearStatements(text => statements.add(text))
  await store.read(q => listSignIns(q, 'usr_1', undefined, 20))
  stopHearing()
  const asked = [...statements].filter(text => text.includes('"later"'))
  expect(asked).toHaveLength(1)
  const [plan] = await plansOf(store.path, asked)
  const used = plan?.steps.flatMap(({ detail }) => /\bevents_\w+/.exec(detail) ?? [])
  expect(new Set(used)).toEqual(new Set(['events_target']))
})

test('PEO-31 the download has the sign-ins with their method, and failed ones with their origin', async () => {
  const { user, browser } = await signedIn()
  app.clock.advance(MINUTE)
  const stranger = openBrowser(app, { ip: '203.0.113.9', headers: { 'user-agent': 'curl/8.17' } })
  await signIn(stranger, await stranger.get('/account'), user.username, 'wrong')
  const file = await browser.submit(await browser.get('/account/data'), {}, '/account/data/download')
  const { events } = JSON.parse(file.html) as Json
  const [failed, latest] = events
  expect(failed).toMatchObject({
    ...{ type: 'user.login_failed', target_id: user.id },
    ...{ ip_address: '203.0.113.9', user_agent: 'curl/8.17' },
  })
  expect(latest).toMatchObject({ type: 'user.login', target_id: user.id, metadata: { amr: ['pwd'] } })
})
