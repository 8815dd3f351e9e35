import { describe, expect, test } from 'bun:test'
import type { Json } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { enrolTotp } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, goThrough, type UpstreamUser } from './upstream.ts'

const { app, upstream, fresh, somebody, accountsOf } = await startLinking()

let made = 0
/** Adds an organization that demands a second factor, and its provider. */
const guarded = async (trust_email = true) => {
  const alias = `guarded-${++made}`
  const { id: organization_id } = await addOrganization(app, alias, { settings: { mfa_required: true } })
  await addClient(app, alias, { organization_id })
  await addProvider(app, alias, { organization_id, client_id: alias, trust_email })
  const at = authorizeUrl(alias).replace('/oauth/authorize', `/oauth/social/${alias}`)
  const addPerson = async (more: Json = {}) => {
    const who = somebody()
    const { id } = await addUser(app, who.sub, { organization_id, email_verified: true, ...more })
    return { id, who }
  }
  const arrive = async (who: UpstreamUser) => {
    const browser = fresh()
    return { browser, step: await goThrough(browser, upstream, at, who) }
  }
  return { alias, organization_id, addPerson, arrive }
}

const stored = (table: 'logins' | 'factors', user_id: string): Promise<Json[]> =>
  app.context.store.read(async q =>
    (await q.select().from(q.tables[table])).filter(row => row.user_id === user_id),
  )

type Given = { alias: string; organization_id: string; id: string }
const provider = (alias: string, change: Json) => {
  app.clock.advance(1)
  return app.admin('PUT', `/identity-providers/${alias}`, change)
}
const moved = { issuer: 'https://repaired.example', client_secret: 'another-secret' }

const changes: [string, (given: Given) => Promise<unknown>][] = [
  ['the user becomes an administrator', ({ id }) => app.admin('PUT', `/users/${id}`, { roles: ['admin'] })],
  [
    'the user joins a group of administrators',
    async ({ organization_id, id }) => {
      const group = await create(app, '/groups', { organization_id, name: 'admins', roles: ['admin'] })
      return app.admin('PUT', `/groups/${group.id}/members/${id}`)
    },
  ],
  ['the provider is no longer trusted', ({ alias }) => provider(alias, { trust_email: false })],
  ['the provider is moved', ({ alias }) => provider(alias, moved)],
]

describe('FED-30 a link by the address that waits for the second factor', () => {
  test.each(changes)('is not made once %s', async (_, change) => {
    const { addPerson, arrive, ...given } = await guarded()
    const { id, who } = await addPerson()
    const { browser, step } = await arrive(who)
    expect(step.heading).toBe('Protect your account')
    await change({ ...given, id })
    await app.events()
    const { page } = await enrolTotp(app, browser, step)
    expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
    expect(await accountsOf(id)).toEqual([])
    expect([await stored('logins', id), await stored('factors', id)]).toEqual([[], []])
    expect(await app.events()).toEqual([])
  })

  test.each([true, false])('is made when nothing changes, verified here: %p', async email_verified => {
    const { addPerson, arrive } = await guarded()
    const { id, who } = await addPerson({ email_verified })
    const { browser, step } = await arrive(who)
    expect((await enrolTotp(app, browser, step)).page.status).toBe(200)
    expect([(await accountsOf(id)).length, (await stored('logins', id)).length]).toEqual([1, 1])
  })

  test('is not made once the account is linked to another user', async () => {
    const { addPerson, arrive } = await guarded()
    const [first, late] = [await addPerson(), await addPerson()]
    const waiting = await arrive({ sub: 'shared', email: late.who.email })
    const { browser, step } = await arrive({ sub: 'shared', email: first.who.email })
    expect((await enrolTotp(app, browser, step)).page.status).toBe(200)
    expect(await accountsOf(first.id)).toHaveLength(1)
    await app.events()
    const { page } = await enrolTotp(app, waiting.browser, waiting.step)
    expect([page.status, page.heading]).toEqual([400, 'This page has expired'])
    expect([await accountsOf(late.id), await stored('factors', late.id)]).toEqual([[], []])
    expect(await app.events()).toEqual([])
  })
})

test.each([true, false])('FED-30 a link by the password: moved provider %p', async isMoved => {
  const { alias, addPerson, arrive } = await guarded(false)
  const { id, who } = await addPerson()
  const { browser, step: proof } = await arrive(who)
  const step = await browser.follow(await browser.submit(proof, { password: PASSWORD }))
  // The password suffices for an administrator, too.
  await app.admin('PUT', `/users/${id}`, { roles: ['admin'] })
  if (isMoved) await provider(alias, moved)
  await app.events()
  const { page } = await enrolTotp(app, browser, step)
  expect([page.status, (await accountsOf(id)).length]).toEqual(isMoved ? [400, 0] : [200, 1])
  expect((await app.events()).filter(({ metadata }) => metadata.linked)).toHaveLength(isMoved ? 0 : 1)
})
