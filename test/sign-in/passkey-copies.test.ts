import { expect, test } from 'bun:test'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { enrolPasskey, openEnrolment, optionsOf, signInWith } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
let users = 0

const withPasskey = async () => {
  const user = await addUser(app, `user${++users}`)
  const browser = openBrowser(app)
  const { passkey } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
  await told()
  return { user, passkey }
}
/** Returns the events and the subjects of the mails since the last call. */
const told = async () => {
  mail.clear()
  await deliverMails(app.context)
  const events = (await app.events()).map(({ type, target_id, metadata }) => [
    type,
    target_id,
    metadata.failure_reason,
  ])
  return { events, subjects: mail.mails.map(({ to, subject }) => [to, subject]) }
}
const countOf = async (user: { id: string }) => {
  const rows = await app.context.store.read(async q => q.select().from(q.tables.factors))
  return rows.find(({ user_id }) => user_id === user.id)?.sign_count
}
const SUBJECT = 'A passkey for Gatehouse may have been copied'

test.each([7, 3, 0])(
  'FAC-04 a passkey whose counter went from 7 to %d is a copy: refused, recorded, notified',
  async counter => {
    const { user, passkey } = await withPasskey()
    const browser = openBrowser(app)
    const first = await browser.get(authorizeUrl('web'))
    expect(answerOf(await signInWith(browser, first, passkey, { counter: 7 })).code).toBeString()
    await told()
    const other = openBrowser(app)
    const page = await signInWith(other, await other.get(authorizeUrl('web')), passkey, { counter })
    expect([page.status, page.heading]).toEqual([401, 'Sign in'])
    expect(await told()).toEqual({
      events: [['user.login_failed', user.id, 'copied_passkey']],
      subjects: [[user.email, SUBJECT]],
    })
    expect(await countOf(user)).toBe(7)
  },
)

test('FAC-04 also as a second factor', async () => {
  const { user, passkey } = await withPasskey()
  const browser = openBrowser(app)
  await signInWith(browser, await browser.get(authorizeUrl('web')), passkey, { counter: 7 })
  await told()
  const other = openBrowser(app)
  const step = await signIn(other, await other.get(authorizeUrl('web')), user.username)
  await told()
  const credential = passkey.get(optionsOf(step), { counter: 7 })
  const page = await other.submit(step, { credential }, '/oauth/second-factor')
  expect([page.status, page.heading]).toEqual([401, 'Two-step verification'])
  const { events, subjects } = await told()
  expect(events).toEqual([['user.login_failed', user.id, 'copied_passkey']])
  expect(subjects).toContainEqual([user.email, SUBJECT])
})

test('only one of two responses with the same count at once signs in', async () => {
  const { user, passkey } = await withPasskey()
  const browsers = [openBrowser(app), openBrowser(app)]
  const pages = await Promise.all(browsers.map(browser => browser.get(authorizeUrl('web'))))
  const answers = await Promise.all(
    browsers.map((browser, at) => {
      const page = pages[at] ?? pages[0]
      if (!page) throw new Error('no page')
      return browser.submit(
        page,
        { credential: passkey.get(optionsOf(page), { counter: 9 }) },
        '/oauth/passkey',
      )
    }),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([302, 401])
  expect((await told()).events).toEqual([['user.login_failed', user.id, 'copied_passkey']])
})

test.each(['/oauth/passkey', '/oauth/second-factor'])(
  'the same form sent twice at once to %s is no copy: no event, no mail',
  async action => {
    const { user, passkey } = await withPasskey()
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('web'))
    const page = action === '/oauth/passkey' ? login : await signIn(browser, login, user.username)
    const credential = passkey.get(optionsOf(page), { counter: 9 })
    await told()
    const send = () => browser.submit(page, { credential }, action)
    const answers = await Promise.all([send(), send()])
    expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
    expect(await countOf(user)).toBe(9)
    const { events, subjects } = await told()
    expect(events).toEqual([])
    expect(subjects).not.toContainEqual([user.email, SUBJECT])
  },
)

test('a passkey without a counter is always accepted', async () => {
  const { user, passkey } = await withPasskey()
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.factors).set({ sign_count: 0 })
  })
  for (let i = 0; i < 2; i++) {
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('web'))
    expect(answerOf(await signInWith(browser, page, passkey, { counter: 0 })).code).toBeString()
  }
  expect(await countOf(user)).toBe(0)
})
