import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'
import { forgeries } from '#test/support/saml/forgeries.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { accepted, statements } from '#test/support/saml/statements.ts'
import {
  addSaml,
  arrive,
  certifiedProvider,
  comeBack,
  genuineFor,
  rowsOf,
  setOut,
  type Trip,
} from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()
const corp = await addSaml(app, idp, 'corp')
await addClient(app, 'web')
const entry = authorizeUrl('web').replace('/oauth/authorize', '')

const isCallback = (location: string | undefined) =>
  location?.startsWith('https://app.example/callback?code=')

/** Each callback has its own IP address. Another test covers the throttle. */
let visitors = 0
const somebody = () => {
  const ip = `2001:db8:${(++visitors).toString(16)}::1`
  return { ip, browser: openBrowser(app, { ip }) }
}

/** Replaces request ids and handles, because equal pages of refused responses differ in them. */
const uniform = (html: string): string =>
  html.replace(/[0-9a-f-]{36}/g, '<id>').replace(/request=[\w-]{43}/g, 'request=<handle>')
let page: string | undefined

const isRefused = async (trip: Trip, ip: string, encoded: string, reason: string): Promise<void> => {
  const before = await rowsOf(app)
  await app.events()
  const answer = await comeBack(app, trip, encoded, ip)
  if (reason === 'saml_unreadable') {
    expect(answer.status).toBe(413)
  } else {
    if (answer instanceof Response) throw new Error(`refused at the door: ${answer.status}`)
    expect([answer.status, answer.heading]).toEqual([400, 'Signing in didn’t work'])
    expect(answer.html).toMatch(/<code>[0-9a-f-]{36}<\/code>/)
    page ??= uniform(answer.html)
    expect(uniform(answer.html)).toBe(page)
  }
  expect(await rowsOf(app)).toEqual(before)
  expect(await app.events()).toEqual([
    {
      type: 'user.login_failed',
      actor_id: null,
      target_id: '',
      target_type: 'user',
      organization_id: 'org_default',
      metadata: {
        username_attempted: '',
        failure_reason: reason,
        attempt_count: 1,
        identity_provider: corp.id,
      },
    },
  ])
}

const reasonAtTheDoor = (reason: string) => (reason === 'too_large' ? 'saml_unreadable' : `saml_${reason}`)

/** Checks that a genuine response is still accepted between the forgeries. */
const isLetIn = async () => {
  const { browser } = somebody()
  const end = await arrive(app, idp, await setOut(app, 'corp', entry, browser))
  expect(isCallback(end.location)).toBe(true)
}

for (const [index, { name, reason, make }] of forgeries.entries())
  test(name, async () => {
    if (index % 8 === 0) await isLetIn()
    const { ip, browser } = somebody()
    const trip = await setOut(app, 'corp', entry, browser)
    await isRefused(trip, ip, encode(make(genuineFor(idp, trip.party))), reasonAtTheDoor(reason))
  })

for (const [index, { name, reason, say, how, signing }] of statements.entries())
  test(name, async () => {
    if (index % 8 === 0) await isLetIn()
    const { ip, browser } = somebody()
    const trip = await setOut(app, 'corp', entry, browser)
    const said = { ...ordinary(trip.party), ...say(trip.party) }
    await isRefused(trip, ip, encode(idp.respond(said, how, signing)), reasonAtTheDoor(reason))
  })

for (const { name, say, how, signing } of accepted)
  test(name, async () => {
    const { browser } = somebody()
    const trip = await setOut(app, 'corp', entry, browser)
    const words = { ...say(trip.party), name_id: 'ada-4711' }
    expect(isCallback((await arrive(app, idp, trip, words, how, signing)).location)).toBe(true)
  })
