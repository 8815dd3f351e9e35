/**
 * Measures response times as an attacker could. The states of an account are measured in turn, so that other
 * load affects all states. Password hashes are cheap, because expensive hashes would hide a difference.
 */
import { afterAll, expect, spyOn, test } from 'bun:test'
import { hostActor } from '#src/audit/record.ts'
import { costOf } from '#src/directory/users/hash-costs.ts'
import { createUser } from '#src/directory/users/service.ts'
import { DAY } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { enrolPasskey, linkWith, optionsOf } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'
import { figure, LONG } from './faults.ts'
import { percentile } from './percentile.ts'

const ROUNDS = LONG ? 250 : 2
const WARM_UP = LONG ? 50 : 1
/** Maximum relative difference between the medians of two states. */
const MOST = 0.05

const statements: string[] = []
afterAll(hearStatements(text => statements.push(text)))
const verify = spyOn(Bun.password, 'verify')
afterAll(() => verify.mockRestore())

const app = await startApp({}, { mail: captureMail() })
const { id: elsewhere } = await addOrganization(app, 'elsewhere')
await addClient(app, 'web')
await addUser(app, 'known')
const disabled = await addUser(app, 'disabled')
await addUser(app, 'foreign', { organization_id: elsewhere })
await createUser(
  app.context,
  {
    username: 'imported',
    email: 'imported@example.com',
    first_name: 'Imported',
    last_name: 'Example',
    enabled: true,
    email_verified: true,
    attributes: {},
    roles: [],
    password_hash: await Bun.password.hash(PASSWORD, { algorithm: 'bcrypt', cost: 4 }),
  },
  hostActor,
)

const passkeyOf = async (username: string, organization = 'default') => {
  const browser = openBrowser(app)
  await signIn(browser, await browser.get(`/account?organization=${organization}`), username)
  const choice = await browser.follow(await browser.get('/account/security/add'))
  return (await enrolPasskey(browser, choice)).passkey
}
const passkeys = {
  known: await passkeyOf('known'),
  disabled: await passkeyOf('disabled'),
  foreign: await passkeyOf('foreign', 'elsewhere'),
  stolen: newPasskey(),
}
await app.admin('PUT', `/users/${disabled.id}`, { enabled: false })

/** A signature by another key under the id of a known passkey. */
const forged = (options: Json): string =>
  passkeys.stolen.get(options).replaceAll(passkeys.stolen.id, passkeys.known.id)

type State = 'unknown' | 'wrong secret' | 'disabled' | 'other organization' | 'other hash cost'
type Submit = (browser: Browser, page: Page) => Promise<Page>

const login =
  (username: string, password = PASSWORD): Submit =>
  (browser, page) =>
    browser.submit(page, { username, password }, '/oauth/login')
const reset =
  (username: string): Submit =>
  (browser, page) =>
    browser.submit(page, { username })
const passkey =
  (get: (options: Json) => string): Submit =>
  (browser, page) =>
    browser.submit(page, { credential: get(optionsOf(page)) }, '/oauth/passkey')

interface Endpoint {
  status: number
  /** Goes from the login page to the page with the form. */
  open: Submit
  states: Partial<Record<State, Submit>>
}

const stay: Submit = async (_, page) => page
const begin =
  (login_hint: string): Submit =>
  browser =>
    browser.get(authorizeUrl('web', { login_hint }))
const endpoints: Record<string, Endpoint> = {
  'POST /oauth/login': {
    status: 401,
    open: stay,
    states: {
      unknown: login('nobody'),
      'wrong secret': login('known', 'wrong'),
      disabled: login('disabled'),
      'other organization': login('foreign'),
      'other hash cost': login('imported', 'wrong'),
    },
  },
  'POST /oauth/reset-password': {
    status: 200,
    open: (browser, page) => browser.get(linkWith(page, '/oauth/reset-password')),
    states: {
      unknown: reset('nobody'),
      'wrong secret': reset('known'),
      disabled: reset('disabled'),
      'other organization': reset('foreign'),
      'other hash cost': reset('imported'),
    },
  },
  'GET /oauth/authorize, which offers passkeys': {
    status: 200,
    open: stay,
    states: {
      unknown: begin('nobody'),
      'wrong secret': begin('known'),
      disabled: begin('disabled'),
      'other organization': begin('foreign'),
      'other hash cost': begin('imported'),
    },
  },
  'POST /oauth/passkey': {
    status: 401,
    open: stay,
    states: {
      unknown: passkey(options => passkeys.stolen.get(options)),
      'wrong secret': passkey(forged),
      disabled: passkey(options => passkeys.disabled.get(options)),
      'other organization': passkey(options => passkeys.foreign.get(options)),
    },
  },
}

interface Sample {
  ms: number
  statements: string[]
  /** Costs of the password hashes that were computed. */
  hashes: string[]
}

const sample = async ({ status, open }: Endpoint, submit: Submit, ip: string): Promise<Sample> => {
  const browser = openBrowser(app, { ip })
  const page = await open(browser, await browser.get(authorizeUrl('web')))
  statements.length = 0
  verify.mockClear()
  const began = performance.now()
  const answer = await submit(browser, page)
  const ms = performance.now() - began
  expect(answer.status).toBe(status)
  const hashes = verify.mock.calls.map(([, hash]) => costOf(String(hash))).sort()
  return { ms, statements: [...statements], hashes }
}

type Samples = Map<string, Sample[]>

/** Takes `rounds` samples of each state. In each round another state comes first. */
const measure = async (endpoint: Endpoint, samples: Samples, rounds: number): Promise<void> => {
  const states = Object.entries(endpoint.states)
  for (let round = 0; round < rounds; round++) {
    // After a day, failures of the previous round no longer cause a wait.
    app.clock.advance(DAY)
    for (let i = 0; i < states.length; i++) {
      const place = (i + round) % states.length
      const [state = '', submit = stay] = states[place] ?? []
      const taken = await sample(endpoint, submit, `192.0.2.${place}`)
      samples.set(state, [...(samples.get(state) ?? []), taken])
    }
    await deliverMails(app.context)
  }
}

const medianOf = (samples: Sample[]): number =>
  percentile(
    samples.map(({ ms }) => ms),
    0.5,
  )

/** Returns the fraction by which the slowest state's median exceeds the fastest state's median. */
const spreadOf = (samples: Samples): number => {
  const medians = [...samples.values()].map(medianOf)
  return Math.max(...medians) / Math.min(...medians) - 1
}

for (const [name, endpoint] of Object.entries(endpoints))
  test(`R-25 ${name}: the same work in the same time for each state of an account`, async () => {
    await measure(endpoint, new Map(), WARM_UP)
    const samples: Samples = new Map()
    let rounds = 0
    // Load on the machine shifts a median. After more rounds such a shift is small, but a real difference
    // stays.
    while (rounds === 0 || (LONG && rounds < 4 * ROUNDS && spreadOf(samples) > MOST)) {
      await measure(endpoint, samples, ROUNDS)
      rounds += ROUNDS
    }
    const { statements, hashes } = samples.get('unknown')?.[0] ?? {}
    for (const [state, taken] of samples)
      for (const each of taken)
        expect([state, each.statements, each.hashes]).toEqual([state, statements ?? [], hashes ?? []])
    if (!LONG) return
    const medians = [...samples].map(([state, taken]) => `${state} ${medianOf(taken).toFixed(2)}`)
    const spread = `${(spreadOf(samples) * 100).toFixed(1)} %`
    figure('R-25', `${name}, medians of ${rounds} in ms: ${medians.join(', ')}; apart by ${spread}`)
    expect(spreadOf(samples)).toBeLessThanOrEqual(MOST)
  }, 600_000)
