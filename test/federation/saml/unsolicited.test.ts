import { describe, expect, test } from 'bun:test'
import { sweep } from '#src/operations/sweep.ts'
import { openApp, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary, type ResponseContent } from '#test/support/saml/response-parts.ts'
import { openBeside } from '#test/support/store.ts'
import { addSaml, certifiedProvider, comeBack, partyOf, post, rowsOf, setOut, type Trip } from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()

await addSaml(app, idp, 'corp')
await addSaml(app, idp, 'open', { allow_idp_initiated: true })
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

describe('unsolicited responses', () => {
  const drop = async (encoded: string, browser = openBrowser(app), relay_state = '') =>
    comeBack(app, { alias: 'open', browser, relay_state }, encoded)

  test('end on the account page', async () => {
    const page = await drop(unasked('open'))
    expect('url' in page && page.url).toBe('/account')
  })

  for (const state of [
    'https://evil.example/',
    'javascript:alert(1)',
    '//evil.example',
    '/account?x',
    'x'.repeat(10_000),
  ])
    test(`S-33 RelayState ${state.slice(0, 24)} is only a lookup key, and unknown`, async () => {
      await forget()
      const page = await drop(unasked('open'), openBrowser(app), state)
      expect('url' in page && page.url).toBe('/account')
      const trip = await setOut(app, 'corp', entry)
      expect((await comeBack(app, { ...trip, relay_state: state }, answerTo(trip))).status).toBe(400)
      expect((await reasons()).at(-1)).toEqual(['user.login_failed', 'unknown_state'])
    })

  test('S-29 must not answer a request', async () => {
    const trip = await setOut(app, 'open', entry)
    await forget()
    expect((await drop(answerTo(trip))).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_wrong_request'))
    expect(isIn(await comeBack(app, trip, answerTo(trip)))).toBe(true)
  })

  test('S-31 are accepted once for each assertion', async () => {
    const encoded = unasked('open')
    expect((await drop(encoded)).status).toBe(200)
    await forget()
    expect((await drop(encoded)).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_replayed'))
  })

  test('S-31 are accepted once when twenty come at the same moment', async () => {
    const encoded = unasked('open')
    await forget()
    const before = await rowsOf(app)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, i) => drop(encoded, openBrowser(app, { ip: `198.51.100.${i}` }))),
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)])
    expect((await rowsOf(app)).logins).toBe((before.logins ?? 0) + 1)
    // A later replay of the same response is recorded.
    expect((await drop(encoded)).status).toBe(400)
    expect((await reasons()).at(-1)).toEqual(['user.login_failed', 'saml_replayed'])
  })

  test('FED-29 a refusal in a new browser leads to the login page', async () => {
    const encoded = unasked('open')
    expect((await drop(encoded)).status).toBe(200)
    const browser = openBrowser(app)
    const page = await drop(encoded, browser)
    if (!('html' in page)) throw new Error('refused at the door')
    expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
    const link = /href="(\/oauth\/login\?request=[^"]+)"/.exec(page.html)?.[1] ?? ''
    const login = await browser.get(link)
    expect([login.status, login.heading]).toEqual([200, 'Sign in'])
  })

  test('S-31 are accepted once, over a restart', async () => {
    const encoded = unasked('open')
    expect((await drop(encoded)).status).toBe(200)
    const { path } = app.context.store as typeof app.context.store & { path: string }
    const store = await openBeside(path)
    const again = await openApp({ ...app.context, store })
    const restarted = {
      ...app,
      ...again,
      call: ((target, { ip: _, ...init } = {}) =>
        again.fetch(
          new Request(new URL(target, app.context.config.url), { redirect: 'manual', ...init }),
        )) as TestApp['call'],
    }
    await forget()
    const browser = openBrowser(restarted)
    const trip = { alias: 'open', browser, relay_state: '' }
    expect((await comeBack(restarted, trip, encoded)).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_replayed'))
    expect((await comeBack(restarted, trip, unasked('open'))).status).toBe(200)
    const [before, after] = await Promise.all(
      [app, restarted].map(async each => (await each.call('/saml/corp/metadata')).text()),
    )
    expect(after).toBe(before)
    await store.close()
  })

  test('S-31 are forgotten by the sweep only after the assertion expires', async () => {
    const encoded = unasked('open')
    expect((await drop(encoded)).status).toBe(200)
    const count = () => app.context.store.read(q => q.$count(q.tables.used_assertions))
    app.clock.advance(5 * 60_000)
    await sweep(app.context)
    await forget()
    expect((await drop(encoded)).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_replayed'))
    app.clock.advance(11 * 60_000)
    await sweep(app.context)
    expect(await count()).toBe(0)
    await forget()
    expect((await drop(encoded)).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('saml_expired'))
  })

  test('are verified before anything is stored', async () => {
    const stored = () => app.context.store.read(q => q.$count(q.tables.stored_posts))
    const before = await stored()
    expect(
      (await post(app, 'open', { SAMLResponse: encode(idp.respond(ordinary(partyOf(app, 'open')), 'none')) }))
        .status,
    ).toBe(400)
    expect(await stored()).toBe(before)
  })
})

describe('changes during a login at the provider', () => {
  const change = async (alias: string, body: object) => {
    const { status } = await app.admin('PUT', `/identity-providers/${alias}`, body)
    expect(status).toBe(200)
  }

  test('S-32 the provider is disabled', async () => {
    const trip = await setOut(app, 'corp', entry)
    const answer = await post(app, 'corp', { SAMLResponse: answerTo(trip), RelayState: trip.relay_state })
    await change('corp', { enabled: false })
    await forget()
    expect((await trip.browser.get(answer.headers.get('location') ?? '')).status).toBe(400)
    expect(await reasons()).toEqual(refusedFor('provider_disabled'))
    await change('corp', { enabled: true })
  })

  test('S-32 the provider is deleted', async () => {
    await addSaml(app, idp, 'brief')
    const trip = await setOut(app, 'brief', entry)
    const fields = { SAMLResponse: answerTo(trip), RelayState: trip.relay_state }
    const answer = await post(app, 'brief', fields)
    await app.admin('DELETE', '/identity-providers/brief')
    const before = await rowsOf(app)
    expect((await trip.browser.get(answer.headers.get('location') ?? '')).status).toBe(404)
    expect((await post(app, 'brief', fields)).status).toBe(404)
    expect(await rowsOf(app)).toEqual(before)
  })

  test('S-24 the certificate: both are valid during the rollover, then the old one is refused at once', async () => {
    const next = await certifiedProvider()
    const by = async (provider: typeof idp) => {
      const trip = await setOut(app, 'corp', entry)
      return isIn(await comeBack(app, trip, encode(provider.respond(ordinary(trip.party)))))
    }
    await change('corp', { certificates: [idp.certificate, next.certificate] })
    expect([await by(idp), await by(next)]).toEqual([true, true])
    const stored = await setOut(app, 'corp', entry)
    const answer = await post(app, 'corp', { SAMLResponse: answerTo(stored), RelayState: stored.relay_state })
    await change('corp', { certificates: [next.certificate] })
    await forget()
    expect((await stored.browser.get(answer.headers.get('location') ?? '')).status).toBe(400)
    expect([await by(idp), await by(next)]).toEqual([false, true])
    expect(await reasons()).toEqual([
      ...refusedFor('saml_bad_signature'),
      ...refusedFor('saml_bad_signature'),
    ])
    await change('corp', { certificates: [idp.certificate] })
    expect(await by(idp)).toBe(true)
  })

  test('S-23 an expired certificate is still accepted, and the admin API reports it', async () => {
    const old = await certifiedProvider({
      notBefore: new Date('2010-01-01'),
      notAfter: new Date('2015-01-01'),
    })
    const made = await addSaml(app, old, 'old')
    expect(made.certificates[0]).toMatchObject({ expired: true, expires_at: '2015-01-01T00:00:00.000Z' })
    const trip = await setOut(app, 'old', entry)
    const said = {
      ...ordinary(trip.party),
      name_id: 'old-1',
      attributes: { mail: ['old@example.com'], sn: ['Old'] },
    }
    expect(isIn(await comeBack(app, trip, encode(old.respond(said))))).toBe(true)
  })

  test('S-23 a provider without a certificate cannot be created', async () => {
    const { status, body } = await app.admin('PUT', '/identity-providers/corp', { certificates: [] })
    expect([status, body.details[0].field]).toEqual([422, 'certificates'])
  })
})
