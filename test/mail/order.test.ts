import { expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { listDueMails } from '#src/mail/store.ts'
import { startApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'
import { hearStatements, plansOf } from '#test/support/statements.ts'
import { freshStore } from '#test/support/store.ts'

test('a mail that a person waits for goes before waiting notices, also after a failed attempt', async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  const ada = await addUser(app, 'ada')
  const bob = await addUser(app, 'bob', { email_verified: false })
  const notify = (kind: 'password_changed' | 'email_changed') =>
    app.context.store.write(tx =>
      enqueueNotice(app.context, tx, kind, { ...ada, organization_id: 'org_default' }, {}),
    )
  await app.admin('POST', `/users/${bob.id}/send-verification`)
  const refusing = { send: () => Promise.reject(new Error('451 try again later')) }
  expect(await deliverMails({ ...app.context, mail: refusing })).toBe(1)
  await notify('password_changed')
  await notify('email_changed')
  app.clock.advance(MINUTE)
  expect(await deliverMails(app.context)).toBe(3)
  expect(mail.mails.map(({ subject }) => subject)).toEqual([
    'Confirm your email address for Gatehouse',
    'Your password for Gatehouse was changed',
    'Your email address for Gatehouse was changed',
  ])
})

test('due mails are read in the order of an index, so that a sent mail does not cost a sort of all', async () => {
  const store = await freshStore()
  const statements: string[] = []
  const stopHearing = hearStatements(text => statements.push(text))
  await store.read(q => listDueMails(q, 0, ['org_default'], 4))
  stopHearing()
  const [awaited, others, ...more] = await plansOf(store.path, statements)
  const detailsOf = (plan: typeof awaited) => plan?.steps.map(({ detail }) => detail).join('\n')
  expect(detailsOf(awaited)).toContain('mails_awaited')
  expect(detailsOf(others)).toContain('mails_next')
  expect(`${detailsOf(awaited)}${detailsOf(others)}`).not.toContain('TEMP B-TREE')
  expect(more).toEqual([])
})
