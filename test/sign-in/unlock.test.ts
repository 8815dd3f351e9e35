import { expect, test } from 'bun:test'
import { hostActor } from '#src/audit/record.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { countFailure, ROW } from '#src/sign-in/throttle.ts'
import { forgetFailures } from '#src/sign-in/unlock.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })

test('an unlocked user can sign in at once, from the same network too; others still wait', async () => {
  const ada = await addUser(app, 'ada')
  await addUser(app, 'bob')
  const attempt = async (name: string, password?: string, ip = '192.0.2.10') => {
    const browser = openBrowser(app, { ip })
    return (await signIn(browser, await browser.get('/account'), name, password)).status
  }
  expect(await attempt('ada')).toBe(200)
  for (let i = 0; i < 5; i++)
    for (const [name, ip] of [
      ['ada', '192.0.2.10'],
      ['ada', '198.51.100.1'],
      ['ada@example.com', '198.51.100.1'],
      ['bob', '198.51.100.2'],
    ] as const)
      await attempt(name, 'Wrong-horse-7', ip)
  expect(await attempt('ada')).toBe(429)
  expect(await attempt('ada@example.com', undefined, '198.51.100.1')).toBe(429)
  await app.context.store.write(tx => forgetFailures(app.context, tx, ada, hostActor))
  expect(await attempt('ada')).toBe(200)
  expect(await attempt('ada', undefined, '198.51.100.1')).toBe(200)
  expect(await attempt('ada@example.com', undefined, '198.51.100.1')).toBe(200)
  expect(await attempt('bob', undefined, '198.51.100.2')).toBe(429)
})

test('an unlocked user gets codes by mail at once', async () => {
  await app.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } })
  const eve = await addUser(app, 'eve', { email_verified: true })
  const browser = openBrowser(app, { ip: '203.0.113.5' })
  const getsCode = async () => {
    mail.clear()
    const page = await browser.get(linkWith(await browser.get('/account'), '/oauth/email-code'))
    await browser.submit(page, { username: 'eve' }, '/oauth/email-code')
    await deliverMails(app.context)
    return mail.mails.length > 0
  }
  const sent: boolean[] = []
  for (let i = 0; i < 4; i++) sent.push(await getsCode())
  expect(sent).toEqual([true, true, true, false])
  await app.context.store.write(tx => forgetFailures(app.context, tx, eve, hostActor))
  expect(await getsCode()).toBe(true)
})

test('an unlock deletes the counts of second factors and verification mails, and leaves those of others', async () => {
  const [hal, ivy] = [await addUser(app, 'hal'), await addUser(app, 'ivy')]
  const counts = ({ id }: { id: string }) => [`factor:${id}`, `known-factor:${id}:hash`, `verify:${id}`]
  const keys = [...counts(hal), ...counts(ivy)].map(key => ({ key, limit: ROW }))
  await app.context.store.write(tx => countFailure(app.context, tx, keys))
  await app.context.store.write(tx => forgetFailures(app.context, tx, hal, hostActor))
  const throttles = await app.context.store.read(async q => q.select().from(q.tables.throttles))
  const left = throttles.map(({ key }) => key).filter(key => keys.some(each => each.key === key))
  expect(left.sort()).toEqual(counts(ivy))
})

test('EVT-25 an unlock that deletes counts records one event in the same write; others record none', async () => {
  const acme = await addOrganization(app, 'acme')
  await addClient(app, 'acme-web', { organization_id: acme.id })
  const gus = await addUser(app, 'gus', { organization_id: acme.id })
  const unlock = (then?: () => never) =>
    app.context.store.write(async tx => {
      await forgetFailures(app.context, tx, gus, hostActor)
      then?.()
    })
  await app.events()
  await unlock()
  expect(await app.events()).toEqual([])
  const browser = openBrowser(app, { ip: '203.0.113.6' })
  await signIn(browser, await browser.get(authorizeUrl('acme-web')), 'gus', 'Wrong-horse-7')
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.login_failed'])
  const undone = unlock(() => {
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect(await app.events()).toEqual([])
  await unlock()
  expect(await app.events()).toEqual([
    {
      type: 'user.unlocked',
      actor_id: null,
      target_id: gus.id,
      target_type: 'user',
      organization_id: acme.id,
      metadata: {},
    },
  ])
  await unlock()
  expect(await app.events()).toEqual([])
})
