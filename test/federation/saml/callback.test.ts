import { describe, expect, test } from 'bun:test'
import { readProvider, saveProvider } from '#src/directory/identity-providers/store.ts'
import { openLogger } from '#src/lib/log.ts'
import { TRANSIENT_FORMAT } from '#src/protocol/saml/names.ts'
import { formatTime } from '#src/protocol/saml/time.ts'
import { openApp, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { newCertificate, onUnknownCurve } from '#test/support/certificate.ts'
import { codeOf, enrolTotp } from '#test/support/factors.ts'
import { addClient, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary, type ResponseContent } from '#test/support/saml/response-parts.ts'
import {
  addSaml,
  arrive,
  certifiedProvider,
  comeBack,
  partyOf,
  post,
  rowsOf,
  setOut,
  type Trip,
} from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()
await addSaml(app, idp, 'corp')
await addSaml(app, idp, 'twin')
await addClient(app, 'web')
const entry = authorizeUrl('web').replace('/oauth/authorize', '')

const isIn = (page: Page | Response) =>
  'location' in page && page.location?.startsWith('https://app.example/callback?code=') === true

const reasons = async () => (await app.events()).map(({ type, metadata }) => [type, metadata.failure_reason])
const refusedFor = (reason: string) => [['user.login_failed', reason]]
const forget = async () => void (await app.events())

/** A response for a user whom only this provider has. */
const person = (alias: string): Partial<ResponseContent> => ({
  name_id: `${alias}-1`,
  attributes: { mail: [`${alias}@example.com`], givenName: ['Somebody'] },
})
const answerTo = (trip: Trip) => encode(idp.respond({ ...ordinary(trip.party), ...person(trip.alias) }))
const unasked = (alias: string) => encode(idp.respond({ ...ordinary(partyOf(app, alias)), ...person(alias) }))

test('FED-08 the first login creates a user, the second one finds it', async () => {
  await forget()
  const person = {
    name_id: 'first-1',
    attributes: { mail: ['first@example.com'], givenName: ['First'], sn: ['Comer'] },
  }
  expect(isIn(await arrive(app, idp, await setOut(app, 'corp', entry), person))).toBe(true)
  const [created, ...more] = await app.events()
  expect([created?.type, more.map(({ type }) => type)]).toEqual(['user.created', ['user.updated']])
  const { body: user } = await app.admin('GET', `/users/${created?.target_id}`)
  expect(user).toMatchObject({
    username: 'first',
    email: 'first@example.com',
    email_verified: false,
    first_name: 'First',
    last_name: 'Comer',
    roles: ['user'],
  })
  await forget()
  const renamed = { ...person, attributes: { mail: ['renamed@example.com'] } }
  expect(isIn(await arrive(app, idp, await setOut(app, 'corp', entry), renamed))).toBe(true)
  expect(await app.events()).toEqual([])
})

test('without a client request the login ends on the account page', async () => {
  const page = await arrive(app, idp, await setOut(app, 'corp'))
  expect([page.url, page.status]).toEqual(['/account', 200])
})

test('several pending logins of one browser can all finish', async () => {
  const browser = openBrowser(app)
  const trips = [await setOut(app, 'corp', entry, browser), await setOut(app, 'corp', entry, browser)]
  for (const trip of trips.reverse()) expect(isIn(await arrive(app, idp, trip))).toBe(true)
})

test('O-32 the POST is stored and answered with 303 to a same-site GET; it neither sets nor needs a cookie', async () => {
  const trip = await setOut(app, 'corp', entry)
  const fields = { SAMLResponse: answerTo(trip), RelayState: trip.relay_state }
  const answer = await post(app, 'corp', fields)
  const location = answer.headers.get('location') ?? ''
  expect(answer.status).toBe(303)
  expect(answer.headers.getSetCookie()).toEqual([])
  expect(location).toMatch(/^\/saml\/corp\/acs\/replay\?handle=[\w-]{43}$/)
  for (const line of trip.browser.received) expect(line).toContain('SameSite=Lax')
  // The handle works at the address to which the form was posted, and nowhere else.
  const elsewhere = location.replace('/saml/corp/acs', '/oauth/authorize')
  expect((await trip.browser.get(elsewhere)).status).toBe(400)
  expect(isIn(await trip.browser.follow(await trip.browser.get(location)))).toBe(true)
  expect((await trip.browser.get(location)).status).toBe(400)
})

test('O-57 of repeated POSTs for one upstream request only the last is kept', async () => {
  const stored = () => app.context.store.read(q => q.$count(q.tables.stored_posts))
  const trip = await setOut(app, 'corp', entry)
  const before = await stored()
  for (const filler of ['a', 'b', 'c'])
    await post(app, 'corp', { SAMLResponse: filler.repeat(1000), RelayState: trip.relay_state })
  expect(isIn(await comeBack(app, trip, answerTo(trip)))).toBe(true)
  expect(await stored()).toBe(before)
})

describe('S-29 InResponseTo', () => {
  test('S-29 used: the same response a second time', async () => {
    const trip = await setOut(app, 'corp', entry)
    const answer = answerTo(trip)
    expect(isIn(await comeBack(app, trip, answer))).toBe(true)
    await forget()
    expect((await comeBack(app, trip, answer)).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('unknown_state'))
  })

  test('S-29 unknown', async () => {
    await forget()
    const trip = { ...(await setOut(app, 'corp', entry)), relay_state: 'A'.repeat(43) }
    expect((await comeBack(app, trip, answerTo(trip))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('unknown_state'))
  })

  test('S-29 of another request of the same browser', async () => {
    await forget()
    const browser = openBrowser(app)
    const [one, two] = [await setOut(app, 'corp', entry, browser), await setOut(app, 'corp', entry, browser)]
    expect((await comeBack(app, two, answerTo(one))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_wrong_request'))
  })

  test('O-29 of another browser: nothing happens there, and its own browser can still finish', async () => {
    await forget()
    const trip = await setOut(app, 'corp', entry)
    const victim = openBrowser(app)
    await victim.get(authorizeUrl('web'))
    const before = await rowsOf(app)
    expect((await comeBack(app, { ...trip, browser: victim }, answerTo(trip))).status).toBe(400)
    expect((await comeBack(app, { ...trip, browser: openBrowser(app) }, answerTo(trip))).status).toBe(400)
    expect(await reasons()).toEqual([...refusedFor('unknown_state'), ...refusedFor('unknown_state')])
    expect(await rowsOf(app)).toEqual(before)
    expect(isIn(await comeBack(app, trip, answerTo(trip)))).toBe(true)
  })

  test('S-29 of a request to another provider with the same certificate', async () => {
    await forget()
    const trip = await setOut(app, 'corp', entry)
    const there = { ...trip, alias: 'twin', party: { ...partyOf(app, 'twin', trip.party.request_id) } }
    expect((await comeBack(app, there, answerTo(there))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('unknown_state'))
    const twin = await setOut(app, 'twin', entry, trip.browser)
    expect((await comeBack(app, twin, answerTo(trip))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_wrong_destination'))
  })

  test('S-29 too old', async () => {
    const trip = await setOut(app, 'corp', entry)
    app.clock.advance(31 * 60_000)
    await forget()
    const late = { ...trip, party: { ...trip.party, now: app.clock.now() } }
    expect((await comeBack(app, late, answerTo(late))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('unknown_state'))
  })

  test('S-29 absent, and the provider may not send unsolicited responses', async () => {
    await forget()
    for (const fields of [
      { SAMLResponse: unasked('corp') },
      { SAMLResponse: unasked('corp'), RelayState: '/x' },
    ])
      expect((await post(app, 'corp', fields)).status).toBe(400)
    expect(await reasons()).toEqual([...refusedFor('unknown_state'), ...refusedFor('unknown_state')])
  })
})

describe('the form', () => {
  const odd: [string, (trip: Trip) => string, number, string][] = [
    ['no fields', () => '', 400, 'unknown_state'],
    ['no response', ({ relay_state }) => `RelayState=${relay_state}`, 400, 'saml_bad_encoding'],
    [
      'two responses',
      trip =>
        `RelayState=${trip.relay_state}&SAMLResponse=${encodeURIComponent(answerTo(trip))}&SAMLResponse=x`,
      400,
      'saml_bad_encoding',
    ],
    [
      'two states',
      trip =>
        `RelayState=${trip.relay_state}&RelayState=x&SAMLResponse=${encodeURIComponent(answerTo(trip))}`,
      400,
      'unknown_state',
    ],
    [
      'a hundred other fields before its own',
      trip =>
        `${'a=&'.repeat(100)}RelayState=${trip.relay_state}&SAMLResponse=${encodeURIComponent(answerTo(trip))}`,
      400,
      'unknown_state',
    ],
    ['a hundred thousand fields', () => 'a=&'.repeat(80_000), 400, 'unknown_state'],
    ['more than 256 KiB', () => 'x'.repeat(256 * 1024 + 1), 413, 'saml_unreadable'],
    ['no UTF-8', () => '\ud800', 400, 'unknown_state'],
  ]
  for (const [what, body, status, reason] of odd)
    test(`FED-09 with ${what} is refused`, async () => {
      const trip = await setOut(app, 'corp', entry)
      await forget()
      const answer = await post(app, 'corp', body(trip), '203.0.113.7')
      const location = answer.headers.get('location')
      expect((location ? await trip.browser.get(location) : answer).status).toBe(status)
      expect(await reasons()).toEqual(refusedFor(reason))
    })

  test('in JSON is refused', async () => {
    await forget()
    const answer = await app.call('/saml/corp/acs', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(answer.status).toBe(415)
    expect(await reasons()).toEqual(refusedFor('saml_unreadable'))
  })
})

test('S-20 SHA-1 and S-34 AES-CBC are for providers that opt in', async () => {
  await addSaml(app, idp, 'lax', { allow_sha1: true, allow_cbc: true })
  const signing = {
    signatureAlgorithm: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
    digestAlgorithm: 'http://www.w3.org/2000/09/xmldsig#sha1',
  }
  const lax = await setOut(app, 'lax', entry)
  const said = {
    ...ordinary(lax.party),
    name_id: 'lax-1',
    attributes: { mail: ['lax@example.com'], sn: ['Lax'] },
  }
  expect(isIn(await comeBack(app, lax, encode(idp.respond(said, 'assertion', signing))))).toBe(true)
})

test('S-30 SessionNotOnOrAfter ends the login before the organization’s limit, also across a second factor', async () => {
  const logins = () => app.context.store.read(async q => q.select().from(q.tables.logins))
  const until = app.clock.now() + 600_000
  const said = {
    name_id: 'brief-1',
    attributes: { mail: ['brief@example.com'], sn: ['Brief'] },
    session_until: formatTime(until),
  }
  // The tolerance of a minute for the provider's clock also applies to SessionNotOnOrAfter.
  const ends_at = until + 60_000
  const own = openBrowser(app)
  const page = await arrive(app, idp, await setOut(app, 'corp', '', own), said)
  expect(page.heading).toBe('Your account')
  expect((await logins()).at(-1)?.expires_at).toBe(ends_at)
  const { key } = await enrolTotp(app, own, await own.follow(await own.get('/account/security/add')))
  app.clock.advance(30_000)
  const trip = await setOut(app, 'corp', '')
  const step = await arrive(app, idp, trip, said)
  expect(step.heading).toBe('Two-step verification')
  await trip.browser.submit(step, { code: codeOf(app, key) })
  expect((await logins()).at(-1)?.expires_at).toBe(ends_at)
  const later = await setOut(app, 'corp', '')
  const late = await arrive(app, idp, later, said)
  app.clock.advance(ends_at - app.clock.now())
  expect((await later.browser.submit(late, { code: codeOf(app, key) })).status).toBe(400)
  expect((await own.get('/account')).heading).toBe('Sign in')
  const longer = { ...said, session_until: '9999-12-31T23:59:59Z' }
  const again = await setOut(app, 'corp', '')
  const last = await arrive(app, idp, again, longer)
  await again.browser.submit(last, { code: codeOf(app, key) })
  expect((await logins()).at(-1)?.expires_at).toBe(app.clock.now() + 86_400_000)
})

test('O-48 a response without the requested reauthentication is refused', async () => {
  const forced = authorizeUrl('web', { prompt: 'login' }).replace('/oauth/authorize', '')
  const long_ago = { authn_instant: formatTime(app.clock.now() - 3_600_000) }
  await forget()
  expect((await arrive(app, idp, await setOut(app, 'corp', forced), long_ago)).status).toBe(400)
  expect(await reasons()).toEqual(refusedFor('saml_old_authentication'))
  expect(isIn(await arrive(app, idp, await setOut(app, 'corp', entry), long_ago))).toBe(true)
  expect(isIn(await arrive(app, idp, await setOut(app, 'corp', forced)))).toBe(true)
})

test('S-29 refused responses have their own throttle, by address', async () => {
  const ip = '2001:db8:ffff::7'
  await app.admin('POST', '/users', {
    ...{
      username: 'local',
      email: 'local@example.com',
      first_name: 'L',
      last_name: 'Ocal',
      password: PASSWORD,
    },
  })
  for (let i = 0; i < 30; i++)
    expect((await post(app, 'corp', { SAMLResponse: 'x', RelayState: 'y' }, ip)).status).toBe(400)
  const limited = await post(app, 'corp', { SAMLResponse: 'x', RelayState: 'y' }, '2001:db8:ffff::8')
  expect(limited.status).toBe(429)
  expect(limited.headers.get('retry-after')).toBe('60')
  const browser = openBrowser(app, { ip })
  expect(isIn(await signIn(browser, await browser.get(authorizeUrl('web')), 'local'))).toBe(true)
  expect(isIn(await arrive(app, idp, await setOut(app, 'corp', entry)))).toBe(true)
  app.clock.advance(61_000)
  expect((await post(app, 'corp', { SAMLResponse: 'x', RelayState: 'y' }, ip)).status).toBe(400)
})

test('fields of the provider object are used: mapping and roles', async () => {
  await app.admin('POST', '/roles', { name: 'staff', permissions: [] })
  await addSaml(app, idp, 'mapped', {
    default_roles: ['user', 'staff'],
    attribute_mapping: { subject: 'employeeNumber', email: 'address', username: 'login' },
  })
  await forget()
  const attributes = {
    employeeNumber: ['7'],
    address: ['mapped@example.com'],
    login: ['map.ped'],
    sn: ['Ped'],
  }
  expect(isIn(await arrive(app, idp, await setOut(app, 'mapped', entry), { name_id: 'x', attributes }))).toBe(
    true,
  )
  const [created] = await app.events()
  const { body } = await app.admin('GET', `/users/${created?.target_id}`)
  expect(body).toMatchObject({ username: 'map.ped', email: 'mapped@example.com', roles: ['staff', 'user'] })
  expect(
    isIn(await arrive(app, idp, await setOut(app, 'mapped', entry), { name_id: 'another', attributes })),
  ).toBe(true)
  expect(await app.events()).toEqual([])
})

test('FED-25 a stored certificate with an unusable key does not disable its neighbours', async () => {
  const { id } = await addSaml(app, idp, 'rollover')
  const stored = await app.context.store.read(q => readProvider(q, id))
  if (stored?.type !== 'saml') throw new Error('not stored')
  const unusable = onUnknownCurve(await newCertificate('CN=next', 2020, 2040)).trim()
  const save = (certificates: string[]) =>
    app.context.store.write(tx =>
      saveProvider(tx, { ...stored, settings: { ...stored.settings, certificates } }),
    )
  await save([unusable, ...stored.settings.certificates])
  expect(isIn(await arrive(app, idp, await setOut(app, 'rollover', entry), person('rollover')))).toBe(true)
  await save([unusable])
  await forget()
  const page = await arrive(app, idp, await setOut(app, 'rollover', entry), person('rollover'))
  expect(page.status).toBe(400)
  expect(await reasons()).toEqual(refusedFor('saml_no_certificate'))
})

const listen = async (level: 'trace' | 'warn') => {
  const lines: string[] = []
  const loud = await openApp({ ...app.context, log: openLogger(level, line => void lines.push(line)) })
  const call: TestApp['call'] = async (path, { ip: _, ...init } = {}) =>
    loud.fetch(new Request(new URL(path, app.context.config.url), { redirect: 'manual', ...init }))
  return { heard: { ...app, ...loud, call }, lines }
}

test('a transient NameID is refused with what to set, and accepted once it is set', async () => {
  const { heard, lines } = await listen('warn')
  const attributes = { uid: ['t-1'], mail: ['transient@example.com'], givenName: ['Somebody'] }
  const said = { name_format: TRANSIENT_FORMAT, attributes }
  await addSaml(app, idp, 'passing')
  await forget()
  const before = await rowsOf(app)
  expect((await arrive(heard, idp, await setOut(heard, 'passing', entry), said)).status).toBe(400)
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    { reason: 'saml_no_subject', causes: ['transient NameID, and attribute_mapping has no subject'] },
  ])
  expect(await reasons()).toEqual(refusedFor('saml_no_subject'))
  expect(await rowsOf(app)).toEqual(before)
  await app.admin('PUT', '/identity-providers/passing', { attribute_mapping: { subject: 'uid' } })
  for (const name_id of ['once', 'twice'])
    expect(isIn(await arrive(app, idp, await setOut(app, 'passing', entry), { ...said, name_id }))).toBe(true)
})

test('O-43 the log and the audit log contain only the name of the reason, and nothing of a response', async () => {
  const { heard, lines } = await listen('trace')
  const said = { name_id: 'hush-name', attributes: { mail: ['hush-mail@example.com'], sn: ['Hush-value'] } }
  await forget()
  for (const how of ['none', 'assertion'] as const) {
    const trip = await setOut(heard, 'corp', entry)
    const encoded = encode(idp.respond({ ...ordinary(trip.party), ...said }, how))
    await comeBack(heard, trip, encoded)
    for (const secret of [encoded, encoded.slice(0, 100), trip.relay_state, trip.party.request_id ?? ''])
      expect(lines.join('')).not.toContain(secret)
  }
  expect(lines.join('')).toContain('saml_unsigned')
  expect(lines.join('')).not.toMatch(/hush/i)
  const [refused] = await app.events()
  expect(JSON.stringify(refused)).not.toMatch(/hush/i)
})
