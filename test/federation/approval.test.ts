import { beforeEach, describe, expect, test } from 'bun:test'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { Json } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, atUpstream, goThrough, pathOf } from './upstream.ts'

const mail = captureMail()
const { app, upstream, asking, fresh, somebody, entry, usersBy, accountsOf, whoIs, refusal } =
  await startLinking({
    mail,
  })
const WAITS = { status: 200, heading: 'Waiting for approval' }

const allow = async (registration: string) =>
  expect((await app.admin('PUT', '/organizations/default', { settings: { registration } })).status).toBe(200)
const waiting = async () => (await app.admin('GET', '/registrations')).body.data as Json[]
const arrive = (who: { sub: string; email: string }, alias = 'asking', browser = fresh()) =>
  goThrough(browser, upstream, entry(alias), who)

/** Accepts an invitation by a login at the provider. */
const acceptBy = async (invitation_url: string, who: { sub: string; email: string }) => {
  const browser = fresh()
  const page = await browser.get(invitation_url)
  const away = await browser.submit({ ...page, forms: page.forms.slice(0, 1) }, { provider: 'asking' })
  const url = (await browser.follow(away)).location ?? ''
  return browser.follow(await browser.get(pathOf(await atUpstream(upstream, url, who))))
}

beforeEach(async () => {
  await allow('approval')
  await app.events()
})

test('PEO-11 a person who comes by a provider with the name of staff gets a number; an invited person does not', async () => {
  await allow('off')
  await addUser(app, 'chief', { roles: ['admin'] })
  await addUser(app, 'jamie-2', { roles: ['admin'] })
  const nameOf = async (name: string, domain = 'mail.example') => {
    const email = `${name}@${domain}`
    await arrive({ sub: somebody().sub, email })
    return (await usersBy(email))[0]?.username
  }
  expect(await nameOf('Adm1n')).toBe('Adm1n-2')
  expect(await nameOf('ch1ef')).toBe('ch1ef-2')
  expect(await nameOf('default')).toBe('default-2')
  expect(await nameOf('robin')).toBe('robin')
  expect(await nameOf('jam1e')).toBe('jam1e')
  expect(await nameOf('jam1e', 'other.example')).toBe('jam1e-3')
  const { invitation_url } = await create(app, '/invitations', { delivery: 'link' })
  const email = 'support@mail.example'
  await acceptBy(invitation_url, { sub: somebody().sub, email })
  expect((await usersBy(email))[0]?.username).toBe('support')
})

describe('PEO-42 a person who comes by a provider', () => {
  test('waits for approval, also at a second login, and is let in', async () => {
    const who = somebody()
    const browser = fresh()
    expect(await arrive(who, 'asking', browser)).toMatchObject(WAITS)
    expect((await browser.get('/account')).heading).toBe('Sign in')
    const [user] = await usersBy(who.email)
    expect(user).toMatchObject({ enabled: false, email_verified: false, roles: ['user'] })
    expect(await accountsOf(user?.id)).toMatchObject([{ subject: who.sub }])
    expect((await app.events()).map(({ type, actor_id, metadata }) => [type, actor_id, metadata])).toEqual([
      ['user.created', null, { roles_added: ['user'] }],
      ['user.updated', user?.id, { fields: ['external_accounts'], linked: asking.id }],
      ['user.registered', user?.id, { waits: true }],
    ])
    expect(await waiting()).toMatchObject([{ id: user?.id, email: who.email, email_verified: false }])
    expect(await arrive(who)).toMatchObject(WAITS)
    expect(await refusal()).toEqual([])
    expect((await app.admin('POST', `/registrations/${user?.id}/approve`)).status).toBe(200)
    await deliverMails(app.context)
    expect(mail.mails.at(-1)).toMatchObject({ to: who.email, subject: 'You can sign in to Gatehouse now' })
    expect(await whoIs(await arrive(who))).toBe(user?.id ?? '')
  })

  test('waits also at a second provider that is trusted with the same address', async () => {
    await addProvider(app, 'trusted-too', { trust_email: true, client_id: 'trusted-too' })
    const { sub, email } = somebody()
    expect(await arrive({ sub, email }, 'trusted')).toMatchObject(WAITS)
    await app.events()
    expect(await arrive({ sub: `${sub}-elsewhere`, email }, 'trusted-too')).toMatchObject(WAITS)
    expect(await app.events()).toEqual([])
    const [user] = await usersBy(email)
    expect(await accountsOf(user?.id)).toMatchObject([{ subject: sub }])
    await app.admin('DELETE', `/users/${user?.id}`)
  })

  test('waits also after the form for a missing name, sent twice', async () => {
    const { sub, email } = somebody()
    const browser = fresh()
    const form = await goThrough(browser, upstream, entry('trusted'), {
      sub,
      email,
      email_verified: 'true',
      name: '',
    })
    expect(form.heading).toBe('One more thing')
    for (let time = 0; time < 2; time++)
      expect(await browser.submit(form, { first_name: 'Robin' })).toMatchObject(WAITS)
    expect(await waiting()).toMatchObject([{ email, email_verified: true, first_name: 'Robin' }])
    expect(await usersBy(email)).toHaveLength(1)
    await app.admin('DELETE', `/users/${(await waiting())[0]?.id}`)
  })

  test.each(['approved', 'enabled'])(
    'is refused once an administrator has %s and disabled them',
    async how => {
      const who = somebody()
      await arrive(who)
      const [user] = await usersBy(who.email)
      await (how === 'approved'
        ? app.admin('POST', `/registrations/${user?.id}/approve`)
        : app.admin('PUT', `/users/${user?.id}`, { enabled: true }))
      await app.admin('PUT', `/users/${user?.id}`, { enabled: false })
      await app.events()
      expect((await arrive(who)).status).toBe(400)
      expect((await refusal())[0]?.[2]).toBe('user_disabled')
    },
  )

  test.each(['off', 'open'])('does not wait where registration is %s', async registration => {
    await allow(registration)
    const who = somebody()
    await app.events()
    expect(await whoIs(await arrive(who))).toStartWith('usr_')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.created', 'user.updated'])
  })

  test('does not wait with an invitation, nor with an account from before', async () => {
    await allow('off')
    const known = somebody()
    const id = await whoIs(await arrive(known))
    await allow('approval')
    expect(await whoIs(await arrive(known))).toBe(id)
    const { invitation_url } = await create(app, '/invitations', { delivery: 'link' })
    const who = somebody()
    expect((await acceptBy(invitation_url, who)).heading).toBe('Your account')
    expect(await usersBy(who.email)).toMatchObject([{ enabled: true }])
  })
})
