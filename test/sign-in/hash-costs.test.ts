import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { hostActor } from '#src/audit/record.ts'
import { configuredCost, costOf } from '#src/directory/users/hash-costs.ts'
import { createUser } from '#src/directory/users/service.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD } from '#test/support/people.ts'
import { withSettings } from '#test/support/restarting.ts'

const app = await startApp()
await addClient(app, 'web')
const elsewhere = await addOrganization(app, 'elsewhere')
await addUser(app, 'known')
const dora = await addUser(app, 'disabled')
await app.admin('PUT', `/users/${dora.id}`, { enabled: false })
await addUser(app, 'foreign', { organization_id: elsewhere.id })
const import_ = (username: string, password_hash: string) =>
  createUser(
    app.context,
    {
      username,
      email: `${username}@example.com`,
      first_name: 'I',
      last_name: 'I',
      enabled: true,
      email_verified: true,
      attributes: {},
      roles: [],
      password_hash,
    },
    hostActor,
  )
await import_('bcrypt', await Bun.password.hash(PASSWORD, { algorithm: 'bcrypt', cost: 4 }))
await import_(
  'dearer',
  await Bun.password.hash(PASSWORD, { algorithm: 'argon2id', memoryCost: 128, timeCost: 2 }),
)

const verify = spyOn(Bun.password, 'verify')
beforeEach(() => verify.mockClear())
afterAll(() => verify.mockRestore())

let network = 0
/** Returns the status of the answer, and the costs of the hashes that were computed for it. */
const attempt = async (
  username: string,
  password: string,
  server: Pick<TestApp, 'call' | 'context'> = app,
) => {
  const browser = openBrowser(server, { ip: `10.9.0.${++network}` })
  const page = await browser.get(authorizeUrl('web'))
  verify.mockClear()
  const { status } = await browser.submit(page, { username, password })
  return [status, verify.mock.calls.map(([, hash]) => costOf(String(hash))).sort()] as const
}

const names = ['unknown', 'known', 'disabled', 'foreign', 'bcrypt', 'dearer']
const COSTS = ['$2b$04$', '$argon2id$v=19$m=128,t=2,p=1$', '$argon2id$v=19$m=64,t=1,p=1$']

test('H-32 a login computes one hash for each stored cost, in every state', async () => {
  for (const name of names) expect([name, await attempt(name, 'wrong')]).toEqual([name, [401, COSTS]])
})

test('H-32 also after the settings were raised', async () => {
  const risen = await withSettings(app, { argon2_memory: 256 })
  for (const name of names)
    expect([name, await attempt(name, 'wrong', risen)]).toEqual([
      name,
      [401, [...COSTS, configuredCost(risen.context)].sort()],
    ])
})

test('H-32 users with imported hashes can sign in', async () => {
  for (const name of ['bcrypt', 'dearer']) expect((await attempt(name, PASSWORD))[0]).toBe(302)
})

test('H-32 at most six costs are stored, because each login computes them all', async () => {
  const hashes = await Promise.all(
    [5, 6, 7, 8].map(cost => Bun.password.hash(PASSWORD, { algorithm: 'bcrypt', cost })),
  )
  const made = await Promise.allSettled(hashes.map((hash, i) => import_(`more${i}`, hash)))
  expect(made.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
})
