import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { conflictOnce } from '#test/support/store.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const sent = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails
}
const refusal = { status: 429, body: { error: 'rate_limited', status: 429 } }

test('H-25 administrators can send six mails an hour to one mailbox, whatever the user, route or tag', async () => {
  const users: Json[] = []
  for (const i of [1, 2, 3])
    users.push(await addUser(app, `many${i}`, { email: `one+${i}@example.com`, email_verified: i === 1 }))
  const other = await addUser(app, 'other')
  await sent()
  await app.events()
  const [first, second, third] = users
  const ask = (user: Json, path: string, body?: Json) => app.admin('POST', `/users/${user.id}/${path}`, body)
  const fresh = { password: 'Another-horse-8' }
  const steps = [
    () => ask(first, 'send-password-reset'),
    () => ask(second, 'send-verification'),
    () => ask(second, 'send-verification'),
    () => ask(third, 'send-verification'),
    () => ask(third, 'reset-password', fresh),
    () => app.admin('PUT', `/users/${second.id}`, { email: 'elsewhere@example.com' }),
  ]
  for (const step of steps) {
    expect((await step()).status).toBeLessThan(300)
    expect((await sent()).map(({ to }) => to.replace(/\+\d/, ''))).toEqual(['one@example.com'])
  }
  await app.events()
  const before = (await app.admin('GET', `/users/${third.id}`)).body
  for (const refused of [
    await ask(first, 'send-password-reset'),
    await ask(third, 'reset-password', fresh),
    await app.admin('PUT', `/users/${third.id}`, { email: 'far@example.com' }),
  ]) {
    expect(refused).toMatchObject(refusal)
    expect(refused.headers.get('retry-after')).toBe('600')
  }
  expect([await sent(), await app.events()]).toEqual([[], []])
  expect((await app.admin('GET', `/users/${third.id}`)).body).toEqual(before)
  expect((await ask(other, 'send-password-reset')).status).toBe(204)
  app.clock.advance(10 * MINUTE)
  expect((await ask(first, 'send-password-reset')).status).toBe(204)
  expect((await sent()).map(({ to }) => to)).toEqual(['other@example.com', 'one+1@example.com'])
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.updated', 'user.updated'])
})

test('H-25 mail of one organization to a mailbox does not stop another from changing its user’s password', async () => {
  app.clock.advance(HOUR)
  const email = 'both@example.com'
  const user = await addUser(app, 'both', { email })
  const hostile: Json[] = []
  for (const slug of ['hostile', 'hostile-too']) {
    const { id } = await addOrganization(app, slug)
    hostile.push(await addUser(app, 'decoy', { email, organization_id: id }))
  }
  await sent()
  await app.events()
  const ask = ({ id }: Json, path: string, body?: Json) => app.admin('POST', `/users/${id}/${path}`, body)
  const statuses: number[] = []
  for (let i = 0; i < 14; i++) statuses.push((await ask(hostile[i % 2], 'send-verification')).status)
  // Each of the two organizations has 2 reserved mails to this mailbox. Both organizations share 6 further
  // mails.
  expect(statuses.filter(status => status === 204).length).toBe(10)
  expect(statuses.slice(10)).toEqual([429, 429, 429, 429])
  await app.events()
  const fresh = { password: 'Another-horse-8', temporary: false }
  for (let i = 0; i < 2; i++) expect((await ask(user, 'reset-password', fresh)).status).toBe(204)
  expect(await ask(user, 'reset-password', fresh)).toMatchObject(refusal)
  expect((await sent()).map(({ to }) => to)).toEqual(Array(12).fill(email))
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.password_reset', 'user.password_reset'])
}, 60_000)

test('H-25 a write that runs again after a conflict is charged once', async () => {
  const own = await startApp({}, { mail })
  const user = await addUser(own, 'ada')
  conflictOnce(own.context.store)
  const fresh = { password: 'Another-horse-8' }
  const ask = async (path: string, body?: Json) =>
    (await own.admin('POST', `/users/${user.id}/${path}`, body)).status
  const invite = async () =>
    (
      await own.admin('POST', '/invitations', {
        email: user.email.replace('@', '+new@'),
        delivery: 'mail',
        groups: [],
      })
    ).status
  const statuses = [await ask('send-verification'), await ask('reset-password', fresh), await invite()]
  for (let i = 0; i < 4; i++) statuses.push(await ask('send-verification'))
  expect(statuses).toEqual([204, 204, 201, 204, 204, 204, 429])
})

test('H-25 administrators of one organization can send 500 mails an hour; another organization is not affected', async () => {
  app.clock.advance(HOUR)
  const acme = await addOrganization(app, 'acme')
  const token = await callerOf(app, acme.id, ['users:create', 'users:update'])
  const statuses: number[] = []
  for (let i = 0; i < 84; i++) {
    const user = { username: `user-${i}`, email: `u${i}@acme.example`, password: 'Correct-horse-7' }
    const { body } = await app.admin('POST', '/users', { ...user, first_name: 'U', last_name: 'V' }, token)
    for (let mails = 0; mails < 6; mails++)
      statuses.push((await app.admin('POST', `/users/${body.id}/send-verification`, undefined, token)).status)
  }
  expect([statuses.lastIndexOf(204), statuses.indexOf(429), statuses.length]).toEqual([499, 500, 504])
  const elsewhere = await addUser(app, 'away')
  expect((await app.admin('POST', `/users/${elsewhere.id}/send-verification`)).status).toBe(204)
  expect(await app.context.store.read(q => q.$count(q.tables.mails))).toBe(501)
  await sent()
}, 60_000)

test.each([
  ['Your prize: https://evil.example/claim'],
  ['evil.example'],
  ['www．evil．example'],
  ['ask boss@evil.example'],
])('H-25 %s is not a safe organization name in mail', async display_name => {
  app.clock.advance(HOUR)
  const { id } = await addOrganization(app, `named-${Bun.hash(display_name)}`, { display_name })
  const user = await addUser(app, `in-${Bun.hash(display_name)}`, { organization_id: id })
  await sent()
  expect((await app.admin('POST', `/users/${user.id}/send-verification`)).status).toBe(204)
  const [letter, ...more] = await sent()
  expect([letter?.subject, more]).toEqual(['Confirm your email address for Gatehouse', []])
  expect(`${letter?.text}${letter?.html}`).not.toContain('evil')
})

test.each([['Acme Inc. 2024'], ['Müller & Söhne A.G.'], ['1848: Kaffee'], ['شرکت نمونه']])(
  'H-25 %s is a safe organization name in mail',
  async display_name => {
    app.clock.advance(HOUR)
    const { id } = await addOrganization(app, `named-${Bun.hash(display_name)}`, { display_name })
    const user = await addUser(app, `in-${Bun.hash(display_name)}`, { organization_id: id })
    await sent()
    await app.admin('POST', `/users/${user.id}/send-verification`)
    expect((await sent())[0]?.subject).toBe(`Confirm your email address for ${display_name}`)
  },
)
