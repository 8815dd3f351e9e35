import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf } from '#test/support/callers.ts'
import { enrolPasskey, enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
let users = 0

const withFactors = async () => {
  const user = await addUser(app, `user${++users}`)
  const browser = openBrowser(app)
  const { page } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
  expect(page.heading).toBe('Save your recovery codes')
  app.clock.advance(1)
  await enrolPasskey(browser, await browser.follow(await browser.get('/account/security/add')))
  await app.events()
  return user
}
const stored = (name: 'factors' | 'recovery_codes', user: Json) =>
  app.context.store.read(async q =>
    (await q.select().from(q.tables[name])).filter(({ user_id }) => user_id === user.id),
  )

describe('factors in the admin API', () => {
  test('are listed without their secrets, page by page, in either order', async () => {
    const user = await withFactors()
    const { status, body } = await app.admin('GET', `/users/${user.id}/factors`)
    expect([status, body.pagination]).toEqual([200, { total: 2, limit: 20, has_more: false }])
    expect(body.data.map(({ type, name }: Json) => [type, name])).toEqual([
      ['passkey', 'Passkey'],
      ['totp', 'Authenticator app'],
    ])
    for (const factor of body.data)
      expect(Object.keys(factor)).toEqual(['id', 'type', 'name', 'created_at', 'last_used_at'])
    for (const order of ['asc', 'desc']) {
      const path = `/users/${user.id}/factors?limit=1&order=${order}`
      const first = (await app.admin('GET', path)).body
      const second = (await app.admin('GET', `${path}&cursor=${first.pagination.next_cursor}`)).body
      const ids = [...first.data, ...second.data].map(({ id }) => id)
      const all = body.data.map(({ id }: Json) => id)
      expect(ids).toEqual(order === 'desc' ? all : all.toReversed())
      expect(second.pagination.has_more).toBe(false)
    }
    expect((await app.admin('GET', '/users/usr_x/factors')).status).toBe(404)
  })

  test('are removed one by one, each with its event, and the recovery codes with the last', async () => {
    const user = await withFactors()
    const [second, first] = (await app.admin('GET', `/users/${user.id}/factors`)).body.data
    const remove = (id: string) => app.admin('DELETE', `/users/${user.id}/factors/${id}`)
    expect((await remove(first.id)).status).toBe(204)
    expect((await remove(first.id)).status).toBe(404)
    expect(await stored('recovery_codes', user)).toHaveLength(10)
    expect((await remove(second.id)).status).toBe(204)
    expect(await stored('recovery_codes', user)).toEqual([])
    const by = {
      actor_id: 'gatehouse-admin',
      target_id: user.id,
      target_type: 'user',
      organization_id: 'org_default',
    }
    expect(await app.events()).toEqual([
      {
        type: 'user.updated',
        ...by,
        metadata: { fields: ['factors'], removed: { factor_id: first.id, factor_type: 'totp' } },
      },
      { type: 'user.mfa_disabled', ...by, metadata: { factor_id: second.id, factor_type: 'passkey' } },
    ])
  })

  test('are removed all at once with one event; for a user without any nothing is recorded', async () => {
    const user = await withFactors()
    const all = (await stored('factors', user)).map(({ id }: Json) => id)
    expect((await app.admin('DELETE', `/users/${user.id}/factors`)).status).toBe(204)
    expect((await app.events()).map(({ type, metadata }) => [type, metadata])).toEqual([
      ['user.mfa_disabled', { factor_ids: all }],
    ])
    expect((await app.admin('DELETE', `/users/${user.id}/factors`)).status).toBe(204)
    expect(await app.events()).toEqual([])
    const browser = openBrowser(app)
    expect((await signIn(browser, await browser.get('/account'), user.username)).heading).toBe('Your account')
  })

  test('of users with more rights cannot be removed, and such users can be sent no links or mails', async () => {
    const admin = await addUser(app, 'boss', { roles: ['admin'] })
    const token = await callerOf(app, 'org_default', ['users:update'])
    await app.events()
    await deliverMails(app.context)
    for (const [method, path] of [
      ['DELETE', 'factors'],
      ['DELETE', 'factors/fac_x'],
      ['POST', 'sign-in-link'],
      ['POST', 'send-password-reset'],
      ['POST', 'send-verification'],
    ] as const)
      expect((await app.admin(method, `/users/${admin.id}/${path}`, undefined, token)).status).toBe(403)
    expect(await app.events()).toEqual([])
    expect(await deliverMails(app.context)).toBe(0)
  })
})

describe('a sign-in link', () => {
  test('is made by an administrator, recorded, and works once', async () => {
    const user = await addUser(app, 'lost')
    await app.events()
    const { status, body } = await app.admin('POST', `/users/${user.id}/sign-in-link`)
    expect(status).toBe(201)
    expect(Date.parse(body.expires_at)).toBe(app.clock.now() + 30 * MINUTE)
    expect(
      (await app.events()).map(({ type, actor_id, target_id, metadata }) => [
        type,
        actor_id,
        target_id,
        metadata,
      ]),
    ).toEqual([['user.updated', 'gatehouse-admin', user.id, { fields: ['sign_in_link'] }]])
    const browser = openBrowser(app)
    const choose = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }
    expect((await browser.submit(await browser.get(body.url), choose)).location).toBe('/account')
    expect((await browser.get(body.url)).status).toBe(410)
  })

  test('ends when 20 newer ones are unused; links of mails and of other users stay', async () => {
    const stored = async (user_id: string) =>
      (await app.context.store.read(async q => q.select().from(q.tables.links))).filter(
        link => link.user_id === user_id,
      )
    const make = async ({ id }: { id: string }): Promise<string> => {
      app.clock.advance(1)
      const { status, body } = await app.admin('POST', `/users/${id}/sign-in-link`)
      expect(status).toBe(201)
      return body.url
    }
    const [user, other] = [await addUser(app, 'often'), await addUser(app, 'seldom')]
    await make(other)
    await app.admin('POST', `/users/${user.id}/send-password-reset`)
    await deliverMails(app.context)
    await app.events()
    const urls: string[] = []
    for (let i = 0; i < 21; i++) urls.push(await make(user))
    expect((await app.events()).map(({ metadata }) => metadata)).toEqual(
      urls.map(() => ({ fields: ['sign_in_link'] })),
    )
    const kinds = (await stored(user.id)).map(({ kind }) => kind).sort()
    expect(kinds).toEqual(['reset_password', ...Array(20).fill('sign_in')])
    expect(await stored(other.id)).toHaveLength(1)
    const statuses = urls.map(async url => (await openBrowser(app).get(url)).status)
    expect(await Promise.all(statuses)).toEqual([410, ...Array(20).fill(200)])
  })
})

describe('mail on request', () => {
  const sent = async () => {
    mail.clear()
    await deliverMails(app.context)
    return mail.mails.map(({ to, subject }) => [to, subject])
  }

  test('goes to the user, and records the administrator', async () => {
    const user = await addUser(app, 'far')
    await sent()
    await app.events()
    expect((await app.admin('POST', `/users/${user.id}/send-password-reset`)).status).toBe(204)
    expect((await app.admin('POST', `/users/${user.id}/send-verification`)).status).toBe(204)
    expect(await sent()).toEqual([
      ['far@example.com', 'Choose a new password for Gatehouse'],
      ['far@example.com', 'Confirm your email address for Gatehouse'],
    ])
    expect(
      (await app.events()).map(({ type, actor_id, target_id, metadata }) => [
        type,
        actor_id,
        target_id,
        metadata,
      ]),
    ).toEqual([
      ['user.updated', 'gatehouse-admin', user.id, { fields: ['password_reset_mail'] }],
      ['user.updated', 'gatehouse-admin', user.id, { fields: ['verification_mail'] }],
    ])
  })

  test('is a conflict, with the reason, where the mail would be useless', async () => {
    const disabled = await addUser(app, 'disabled', { enabled: false })
    const verified = await addUser(app, 'verified', { email_verified: true })
    const unknown = await addUser(app, 'unknown')
    await app.context.store.write(tx =>
      tx.update(tx.tables.users).set({ password_hash: null }).where(eq(tx.tables.users.id, unknown.id)),
    )
    await sent()
    await app.events()
    for (const [user, path, why] of [
      [disabled, 'send-password-reset', 'The user is disabled.'],
      [disabled, 'send-verification', 'The user is disabled.'],
      [disabled, 'sign-in-link', 'The user is disabled.'],
      [verified, 'send-verification', 'The address of the user is verified already.'],
      [unknown, 'send-password-reset', 'The user has no password, and the address is not verified.'],
      [unknown, 'send-verification', 'The user has no way to sign in. Create a sign-in link.'],
    ]) {
      const { status, body } = await app.admin('POST', `/users/${user.id}/${path}`)
      expect([status, body.error_description]).toEqual([409, why])
    }
    expect(await sent()).toEqual([])
    expect(await app.events()).toEqual([])
    await app.admin('PUT', `/users/${unknown.id}`, { email_verified: true })
    expect((await app.admin('POST', `/users/${unknown.id}/send-password-reset`)).status).toBe(204)
    expect((await sent())[0]?.[0]).toBe('unknown@example.com')
  })

  test('the API description explains that conflict', async () => {
    const answer = await app.call('/api/v1/openapi.json')
    const { paths } = (await answer.json()) as Json
    const conflictOf = (path: string) =>
      paths[`/api/v1/admin/users/{user_id}/${path}`].post.responses['409'].description
    for (const path of ['send-password-reset', 'send-verification'])
      expect(conflictOf(path)).toContain('sends no mail')
    expect(conflictOf('sign-in-link')).toBe('The user is disabled.')
  })

  test('is a conflict where no mail can be sent', async () => {
    const plain = await startApp()
    const user = await addUser(plain, 'ada')
    for (const path of ['send-password-reset', 'send-verification']) {
      const { status, body } = await plain.admin('POST', `/users/${user.id}/${path}`)
      expect([status, body.error_description]).toEqual([409, expect.stringContaining('smtp_url')])
    }
  })
})
