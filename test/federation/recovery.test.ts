import { expect, test } from 'bun:test'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { create } from '#test/support/callers.ts'
import { enrolTotp, linkWith, recoveryCodesOf, sendForm } from '#test/support/factors.ts'
import { addOrganization, addUser, PASSWORD, signInLink } from '#test/support/people.ts'
import { startLinking } from './linking-world.ts'
import { addProvider, goThrough, pathOf } from './upstream.ts'

const mail = captureMail()
const { app, upstream, asking, fresh, somebody, entry, usersBy, accountsOf, whoIs } = await startLinking({
  mail,
})
const { id: organization_id } = await addOrganization(app, 'careful', { settings: { mfa_required: true } })
await addProvider(app, 'careful', { organization_id, client_id: 'careful', trust_email: true })

test('PEO-16 a recovery code does not replace the login at a provider', async () => {
  const who = somebody()
  const browser = fresh()
  const asked = await goThrough(browser, upstream, '/oauth/social/careful', who)
  const [recovery_code = ''] = recoveryCodesOf((await enrolTotp(app, browser, asked)).page)
  await app.events()
  const thief = fresh()
  const login = await thief.get('/account?organization=careful')
  const form = await thief.get(linkWith(login, '/oauth/recover'))
  const answer = await thief.submit(form, { username: who.sub, recovery_code }, '/oauth/recover')
  expect(answer.status).toBe(401)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata.failure_reason])).toEqual([
    ['user.login_failed', 'wrong_recovery_code'],
  ])
  const owner = fresh()
  const step = await goThrough(owner, upstream, '/oauth/social/careful', who)
  const recover = await owner.get(linkWith(step, 'method=recovery'))
  const done = await owner.submit(recover, { recovery_code }, '/oauth/second-factor')
  expect((await owner.follow(done)).heading).toBe('Security')
})

test('PEO-30 an account with an address that was typed behind a link does not get the owner’s login', async () => {
  const body = { delivery: 'link', organization_id, max_uses: 2 }
  const { invitation_url } = await create(app, '/invitations', body)
  const { sub, email } = somebody()
  const thief = fresh()
  const typed = { username: 'squatter', email, first_name: 'Not', last_name: 'You' }
  const page = await thief.submit(await thief.get(invitation_url), typed, '/account/invitation')
  // The second factor is never added, so no login begins.
  const chosen = await sendForm(thief, page, 'password', { password: PASSWORD, password_repeat: PASSWORD })
  expect((await thief.follow(chosen)).heading).toBe('Protect your account')
  const owner = await goThrough(fresh(), upstream, '/oauth/social/careful', { sub, email })
  expect(owner.heading).toBe('Is this you?')
  const [user] = await usersBy(email)
  expect(await accountsOf(user?.id)).toEqual([])
})

/**
 * Signs a new user in through a provider, resets the password by mail in another browser, and returns the
 * user.
 */
const resetAfter = async (alias: string, claims: { email_verified?: string } = {}) => {
  const who = { ...somebody(), ...claims }
  await goThrough(fresh(), upstream, entry(alias), who)
  const [user] = await usersBy(who.email)
  // Sets a password, as the user can on the account page.
  await app.admin('POST', `/users/${user?.id}/reset-password`, { password: PASSWORD, temporary: false })
  const owner = fresh()
  const login = await owner.get('/account')
  await owner.submit(await owner.get(linkWith(login, '/oauth/reset-password')), { username: who.email })
  mail.clear()
  await deliverMails(app.context)
  const letter = mail.mails.find(({ text }) => text.includes('/account/reset-password'))
  const url = /http:\S+/.exec(letter?.text ?? '')?.[0] ?? ''
  await app.events()
  const given = { password: 'Owner-horse-72', password_repeat: 'Owner-horse-72' }
  const set = await sendForm(owner, await owner.get(pathOf(url)), 'password', given)
  expect((await owner.follow(set)).heading).toBe('Your account')
  return { who, id: user?.id ?? '' }
}

test('PEO-43 a reset by mail ends the way in of a person who typed an address of others', async () => {
  const { who, id } = await resetAfter('asking')
  expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toContainEqual([
    'user.updated',
    { fields: ['external_accounts'], unlinked: asking.id },
  ])
  expect(await accountsOf(id)).toEqual([])
  expect((await goThrough(fresh(), upstream, entry('asking'), who)).heading).toBe('Is this you?')
})

test('PEO-43 the owner of an address confirms no account that another person made with it', async () => {
  const thief = fresh()
  const { email } = somebody()
  await goThrough(thief, upstream, entry('asking'), { sub: `thief-of-${email}`, email })
  const [user] = await usersBy(email)
  await thief.submit(await thief.get('/account/profile'), {}, '/account/profile/verify')
  mail.clear()
  await deliverMails(app.context)
  const url = /http:\S+/.exec(mail.mails.find(({ to }) => to === email)?.text ?? '')?.[0] ?? ''
  await app.events()
  const owner = fresh()
  const page = await owner.get(pathOf(url))
  expect(page.html).toContain('Sign in to the account of this address in this browser first')
  expect(page.forms).toEqual([])
  const own = { sub: `owner-of-${email}`, email, email_verified: 'true' }
  expect((await goThrough(owner, upstream, entry('trusted'), own)).heading).toBe('Is this you?')
  expect(await accountsOf(user?.id)).toHaveLength(1)
  expect((await usersBy(email)).map(({ email_verified }) => email_verified)).toEqual([false])
  expect(await app.events()).toEqual([])
})

test('PEO-43 a reset at a verified address keeps the accounts at providers', async () => {
  const { who, id } = await resetAfter('trusted', { email_verified: 'true' })
  expect(await accountsOf(id)).toHaveLength(1)
  expect(await whoIs(await goThrough(fresh(), upstream, entry('trusted'), who))).toBe(id)
})

test('PEO-43 a sign-in link of an administrator keeps the accounts at providers', async () => {
  const who = somebody()
  await goThrough(fresh(), upstream, entry('asking'), who)
  const [user] = await usersBy(who.email)
  const browser = fresh()
  const page = await browser.get(await signInLink(app, { id: user?.id }))
  const given = { password: PASSWORD, password_repeat: PASSWORD }
  expect((await browser.follow(await sendForm(browser, page, 'password', given))).heading).toBe(
    'Your account',
  )
  expect(await accountsOf(user?.id)).toHaveLength(1)
})

test('FED-24 a user gets a mail when an account is linked, once, and none for a user that the provider made', async () => {
  const { sub, email } = somebody()
  const post = async () => {
    mail.clear()
    await deliverMails(app.context)
    return mail.mails.map(({ to, subject, text }) => [to, subject, text.includes('was connected')])
  }
  const user = await addUser(app, sub)
  await post()
  await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
  expect(await post()).toEqual([[user.email, 'A new way to sign in to Gatehouse', true]])
  expect(mail.mails[0]?.text).toContain('An account at The trusted was connected to your account')
  await goThrough(fresh(), upstream, entry('trusted'), { sub, email })
  await goThrough(fresh(), upstream, entry('trusted'), somebody())
  expect((await post()).filter(([, , isNotice]) => isNotice)).toEqual([])
})
