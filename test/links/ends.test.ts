import { describe, expect, test } from 'bun:test'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf } from '#test/support/callers.ts'
import { codeOf, enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, signIn, signInLink } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
const helpdesk = () => callerOf(app, 'org_default', ['users:read', 'users:update'])
const gone = { status: 410, heading: 'This link doesn’t work any more' }
const choose = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }
let users = 0
const newUser = () => addUser(app, `user${++users}`)

/** Requests a mail with a reset link for the user, and returns the path of the link. */
const resetLink = async (user: { username: string }): Promise<string> => {
  const browser = openBrowser(app, { ip: `198.51.100.${users}` })
  const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/reset-password'))
  await browser.submit(page, { username: user.username })
  await deliverMails(app.context)
  const letter = mail.mails.findLast(({ text }) => text.includes('/account/reset-password?'))
  return /http:\/\/localhost:8080(\S+)/.exec(letter?.text ?? '')?.[1] ?? ''
}

describe('links that sign a user in are revoked', () => {
  const ends: Record<string, (path: string) => Promise<unknown>> = {
    'an administrator sets a password': path =>
      app.admin('POST', `${path}/reset-password`, { password: 'Fresh-horse-99' }),
    'the address changes': path => app.admin('PUT', path, { email: `moved${users}@example.com` }),
    'the user is disabled and enabled again': async path => {
      await app.admin('PUT', path, { enabled: false })
      await app.admin('PUT', path, { enabled: true })
    },
    'all sessions are revoked': path => app.admin('DELETE', `${path}/sessions`),
    'all sessions are revoked by a filter': path =>
      app.admin('DELETE', `/sessions?user_id=${path.slice('/users/'.length)}`),
  }
  for (const [when, end] of Object.entries(ends))
    test(`when ${when}`, async () => {
      const user = await newUser()
      const urls = [await resetLink(user), await signInLink(app, user)]
      const browser = openBrowser(app)
      for (const url of urls) {
        const page = await browser.get(url)
        expect(page.heading).toBe(url.includes('reset') ? 'Choose a new password' : 'Choose how you sign in')
      }
      const opened = await browser.get(urls[1] ?? '')
      await end(`/users/${user.id}`)
      for (const url of urls) expect(await browser.get(url)).toMatchObject(gone)
      expect(await browser.submit(opened, choose)).toMatchObject(gone)
      // A new link of the user works.
      expect((await browser.get(await signInLink(app, user))).status).toBe(200)
    })

  for (const [when, end] of Object.entries(ends))
    test(`and a login that waits for its second factor ends, when ${when}`, async () => {
      const user = await newUser()
      const owner = openBrowser(app)
      const { key } = await enrolTotp(app, owner, await openEnrolment(owner, user.username))
      app.clock.advance(30_000)
      const browser = openBrowser(app)
      const step = await signIn(browser, await browser.get('/account'), user.username)
      expect(step.heading).toBe('Two-step verification')
      await end(`/users/${user.id}`)
      await app.events()
      expect((await browser.submit(step, { code: codeOf(app, key) })).status).toBe(400)
      expect((await browser.get('/account')).heading).toBe('Sign in')
      expect(await app.events()).toEqual([])
    })

  test('and a login that waits for its second factor ends, when two passwords are set at one time', async () => {
    const user = await newUser()
    const owner = openBrowser(app)
    const { key } = await enrolTotp(app, owner, await openEnrolment(owner, user.username))
    app.clock.advance(30_000)
    const reset = (password: string) =>
      app.admin('POST', `/users/${user.id}/reset-password`, { password, temporary: false })
    await reset('Fresh-horse-98')
    const browser = openBrowser(app)
    const step = await signIn(browser, await browser.get('/account'), user.username, 'Fresh-horse-98')
    expect(step.heading).toBe('Two-step verification')
    await reset('Fresh-horse-99')
    expect((await browser.submit(step, { code: codeOf(app, key) })).status).toBe(400)
    expect((await browser.get('/account')).heading).toBe('Sign in')
  })

  test('but not when only the letter case of the address changes', async () => {
    const user = await newUser()
    const urls = [await resetLink(user), await signInLink(app, user)]
    const email = user.email.toUpperCase()
    expect((await app.admin('PUT', `/users/${user.id}`, { email })).body).toMatchObject({ email })
    for (const url of urls) expect((await openBrowser(app).get(url)).status).toBe(200)
  })

  test('but not by a change of the name, or of the rights of others', async () => {
    const user = await newUser()
    const url = await resetLink(user)
    await app.admin('PUT', `/users/${user.id}`, { first_name: 'New', attributes: { a: 1 } })
    await app.admin('DELETE', `/users/${(await newUser()).id}/sessions`)
    expect((await openBrowser(app).get(url)).status).toBe(200)
  })
})

describe('a link made by a helpdesk does not sign in a user who became an administrator', () => {
  const promotions: Record<string, (user_id: string) => Promise<unknown>> = {
    'by a role': user_id => app.admin('PUT', `/users/${user_id}`, { roles: ['admin'] }),
    'by a group that is joined': async user_id => {
      const { body } = await app.admin('POST', '/groups', { name: `joined${users}`, roles: ['admin'] })
      await app.admin('PUT', `/groups/${body.id}/members/${user_id}`)
    },
    'by a group that rises': async user_id => {
      const { body } = await app.admin('POST', '/groups', { name: `risen${users}` })
      await app.admin('PUT', `/groups/${body.id}/members/${user_id}`)
      await app.admin('PUT', `/groups/${body.id}`, { roles: ['admin'] })
    },
    'by a role that rises': async user_id => {
      const { body } = await app.admin('POST', '/roles', { name: `role${users}`, permissions: [] })
      await app.admin('PUT', `/users/${user_id}`, { roles: [`role${users}`] })
      await app.admin('PUT', `/roles/${body.id}`, { permissions: ['clients:delete'] })
    },
  }
  for (const [how, promote] of Object.entries(promotions))
    test(how, async () => {
      const user = await newUser()
      const token = await helpdesk()
      const made = await app.admin('POST', `/users/${user.id}/sign-in-link`, undefined, token)
      const own = await signInLink(app, user)
      const browser = openBrowser(app)
      const opened = await browser.get(made.body.url)
      expect(opened.status).toBe(200)
      await promote(user.id)
      expect(await browser.get(made.body.url)).toMatchObject(gone)
      expect(await browser.submit(opened, choose)).toMatchObject(gone)
      // This link stays valid, because its creator is still allowed to administer the promoted user.
      expect((await browser.get(own)).status).toBe(200)
    })

  test('even when promoted between the password and the second factor', async () => {
    const user = await newUser()
    const owner = openBrowser(app)
    const { key } = await enrolTotp(app, owner, await openEnrolment(owner, user.username))
    app.clock.advance(30_000)
    const { body } = await app.admin('POST', `/users/${user.id}/sign-in-link`, undefined, await helpdesk())
    const browser = openBrowser(app)
    const step = await browser.follow(await browser.submit(await browser.get(body.url), choose))
    expect(step.heading).toBe('Two-step verification')
    await app.admin('PUT', `/users/${user.id}`, { roles: ['admin'] })
    await app.events()
    expect(await browser.submit(step, { code: codeOf(app, key) })).toMatchObject(gone)
    expect(await app.events()).toEqual([])
  })

  test('a role without permissions changes nothing', async () => {
    const user = await newUser()
    const made = await app.admin('POST', `/users/${user.id}/sign-in-link`, undefined, await helpdesk())
    await app.admin('POST', '/roles', { name: 'editor', permissions: [] })
    await app.admin('PUT', `/users/${user.id}`, { roles: ['user', 'editor'] })
    expect((await openBrowser(app).get(made.body.url)).status).toBe(200)
  })
})
