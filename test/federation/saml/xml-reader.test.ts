import { afterAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openXmlReader } from '#src/directory/identity-providers/xml-reader.ts'
import { AppError } from '#src/lib/app-error.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import { LONGEST_HOLD, timed } from '#test/reliability/hold.ts'
import { startApp } from '#test/support/app.ts'
import { refused } from '#test/support/callers.ts'
import { EXECUTABLE, serveExecutable, stop } from '#test/support/executable.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { until } from '#test/support/until.ts'
import { addSaml, certifiedProvider, comeBack, partyOf, post, setOut } from './world.ts'

const xml = openXmlReader([process.execPath, join(import.meta.dir, '../../support/saml/costly-worker.ts')])
afterAll(xml.stop)
const app = await startApp({}, { xml })
const idp = await certifiedProvider()
await addSaml(app, idp, 'corp')
await addSaml(app, idp, 'open', { allow_idp_initiated: true })

const LOOP = '<a>endless-loop</a>'
/** Maximum number of queued documents of one organization. */
const SHARE = 64
const DEFAULT = 'org_default'

/** Returns the error code of a document. All documents here are refused. */
const end = (document: string, organization = DEFAULT, ip_address?: string): Promise<string> =>
  xml.run(organization, 'metadata', document, ip_address).then(
    () => 'read',
    error => (error instanceof SamlError ? error.reason : (error as AppError).code),
  )

const unasked = (name_id: string): string =>
  encode(idp.respond({ ...ordinary(partyOf(app, 'open')), name_id }))

for (const [what, word] of [
  ['an endless loop', 'endless-loop'],
  ['all the memory there is', 'all-memory'],
  ['the end of the worker', 'sudden-end'],
])
  test(`H-04 ${what}: the message is refused, later ones are read`, async () => {
    const before = end('<a/>')
    const costly = end(`<a>${word}</a>`)
    const behind = [end('<a>'), end('<a/>'), end('<a/>', 'org_other')]
    expect(await Promise.all([before, costly, ...behind])).toEqual([
      'bad_shape',
      'too_costly',
      ...['bad_xml', 'bad_shape', 'bad_shape'],
    ])
  }, 60_000)

test('H-04 messages are read although the worker waits for the CPU of a busy machine for more than a second', async () => {
  await app.events()
  expect(await end('<a>busy-machine</a>')).toBe('bad_shape')
  expect((await post(app, 'open', { SAMLResponse: unasked('busy-machine') })).status).toBe(303)
  expect(await app.events()).toEqual([])
})

test('H-04 a login that exceeds the time limit is refused while others are served, and the next one succeeds', async () => {
  await app.events()
  let served = 0
  const costly = post(app, 'open', { SAMLResponse: unasked('endless-loop') })
  const behind = setOut(app, 'corp').then(trip =>
    comeBack(app, trip, encode(idp.respond({ ...ordinary(trip.party), name_id: 'behind' }))),
  )
  for (; Bun.peek.status(costly) === 'pending'; served++) {
    const { result, spent } = await timed(() => app.admin('GET', '/users'))
    expect(result.status).toBe(200)
    expect(spent).toBeLessThan(LONGEST_HOLD)
    // The app answers this request in microtasks. Only a new turn of the event loop runs timers and delivers
    // messages of the worker.
    await new Promise(resolve => setImmediate(resolve))
  }
  expect((await costly).status).toBe(400)
  expect((await behind).status).toBe(200)
  expect(served).toBeGreaterThan(0)
  const failed = (await app.events()).filter(({ type }) => type === 'user.login_failed')
  expect(failed.map(({ metadata }) => metadata.failure_reason)).toEqual(['saml_too_costly'])
}, 60_000)

test('H-04 a metadata document that exceeds the time limit is a 422 of its field', async () => {
  await app.events()
  const provider = { type: 'saml', alias: 'new', name: 'New', metadata_xml: LOOP }
  expect(refused(await app.admin('POST', '/identity-providers', provider))).toEqual(['metadata_xml'])
  expect(await app.events()).toEqual([])
}, 60_000)

test('H-04 an organization whose share of the queue is full gets 503; others are served', async () => {
  const trip = await setOut(app, 'corp')
  const encoded = encode(idp.respond({ ...ordinary(trip.party), name_id: 'late' }))
  await app.events()
  const order: string[] = []
  const noted = (name: string, ended: Promise<string>) => ended.then(() => order.push(name))
  // Waits until the worker runs. The worker's current document does not count as queued.
  expect(await end('<a/>')).toBe('bad_shape')
  const held = end(LOOP)
  const own = Array.from({ length: SHARE }, () => noted('own', end('<a/>')))
  const other = noted('other', end('<a/>', 'org_other'))
  expect(await end('<a/>')).toBe('temporarily_unavailable')

  const login = await post(app, 'corp', { SAMLResponse: encoded, RelayState: trip.relay_state })
  const provider = { type: 'saml', alias: 'new', name: 'New', metadata_xml: '<a/>' }
  const admin = await app.admin('POST', '/identity-providers', provider)
  for (const answer of [login, admin])
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2'])

  expect(await held).toBe('too_costly')
  await Promise.all([...own, other])
  expect(order.slice(0, 2)).toEqual(['own', 'other'])
  expect(await app.events()).toEqual([])
  // The callback that got 503 did not use up its upstream request, so the browser can send the response
  // again.
  expect((await comeBack(app, trip, encoded)).status).toBe(200)
}, 60_000)

test('H-04 one network fills only its share of the queue', async () => {
  expect(await end('<a/>')).toBe('bad_shape')
  await app.events()
  const held = end(LOOP)
  const flood = Array.from({ length: SHARE }, (_, i) => end('<a/>', DEFAULT, `2001:db8::${i}`))
  const login = (ip: string) => post(app, 'open', { SAMLResponse: unasked(`from-${ip}`) }, ip)
  const answers = [login('2001:db8::ff'), login('2001:db8:0:1::1')]
  expect(await held).toBe('too_costly')
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([503, 303])
  const ends = await Promise.all(flood)
  expect(ends).toEqual([
    ...Array(SHARE / 2).fill('bad_shape'),
    ...Array(SHARE / 2).fill('temporarily_unavailable'),
  ])
  expect(await app.events()).toEqual([])
}, 60_000)

test('H-04 a worker that does not start is a 503, not a refusal of the message', async () => {
  const broken = openXmlReader([process.execPath, '-e', 'process.exit(1)'])
  const failed = await broken.run(DEFAULT, 'metadata', '<a/>').catch(error => error)
  expect(failed).toBeInstanceOf(AppError)
  expect([failed.code, failed.headers]).toEqual(['temporarily_unavailable', { 'retry-after': '2' }])
  expect(await end('<a/>')).toBe('bad_shape')
})

test('H-04 twenty simultaneous messages are read, whatever their browser', async () => {
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      post(app, 'open', { SAMLResponse: unasked(`crowd-${i}`) }, `198.51.100.${i}`),
    ),
  )
  expect(all.map(({ status }) => status)).toEqual(Array(20).fill(303))
})

test('H-04 the executable runs its own worker, and leaves none running', async () => {
  await using server = await serveExecutable()
  const provider = { type: 'saml', alias: 'new', name: 'New', metadata_xml: '<a/>' }
  const answer = await server.admin('POST', '/identity-providers', provider)
  expect([answer.status, answer.body.details[0].message]).toEqual([
    422,
    'The metadata contains no identity provider.',
  ])
  const children = async () =>
    (await Bun.$`pgrep -f "^${EXECUTABLE} xml-worker$" -P ${server.pid}`.nothrow().text()).trim()
  const pid = Number(await children())
  expect(pid).toBeGreaterThan(0)
  expect(await stop(server)).toBe(0)
  await until(() => !existsSync(`/proc/${pid}`))
}, 60_000)
