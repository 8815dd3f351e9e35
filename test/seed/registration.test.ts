import { expect, test } from 'bun:test'
import { captureMail } from '#src/mail/captured.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed, SeedError } from '#src/seed/read.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'

const apply = (app: TestApp, settings: Json) =>
  applySeed(app.context, readSeed({ organizations: [{ slug: 'default', settings }] }), {})

const settingOf = async (app: TestApp) =>
  (await app.admin('GET', '/organizations/default')).body.settings.registration

test('PEO-07 RUN-26 a file sets the registration of an organization, and the export repeats it', async () => {
  const app = await startApp({}, { mail: captureMail() })
  await app.events()
  expect(await apply(app, { registration: 'approval' })).toMatchObject([{ action: 'update' }])
  expect((await app.events()).map(({ type }) => type)).toEqual(['organization.updated'])
  expect(await settingOf(app)).toBe('approval')
  const { organizations } = (await exportSeed(app.context, { secrets: false })) as Json
  expect(organizations.find(({ slug }: Json) => slug === 'default').settings.registration).toBe('approval')
  expect(await apply(app, { registration: 'approval' })).toEqual([])
})

test('PEO-07 a file is refused whole without mail, or without the domains that `domains` needs', async () => {
  const app = await startApp()
  const withMail = await startApp({}, { mail: captureMail() })
  for (const [server, registration] of [
    [app, 'open'],
    [withMail, 'domains'],
  ] as const) {
    const error = await apply(server, { registration }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(SeedError)
    expect((error as SeedError).mistakes).toMatchObject([{ path: 'organizations[0].settings.registration' }])
    expect(await settingOf(server)).toBeUndefined()
  }
})

test('a file that needs mail is refused with the settings that the command lacks', async () => {
  const app = await startApp()
  const file = readSeed({
    organizations: [
      { slug: 'acme', settings: { registration: 'open' } },
      { slug: 'corp', settings: { email_code: 'all' } },
    ],
    users: [{ username: 'carl', email: 'carl@example.com', invite: 'mail' }],
  })
  const error = await applySeed(app.context, file).catch((reason: unknown) => reason)
  const remedy = 'set smtp_url and mail_from for the server, and for commands such as apply.'
  expect((error as SeedError).mistakes).toEqual([
    {
      path: 'organizations[0].settings.registration',
      message: `Registration needs a mail server: ${remedy}`,
    },
    { path: 'organizations[1].settings.email_code', message: `Codes by mail need a mail server: ${remedy}` },
    { path: 'users[0]', message: `No mail can be sent: ${remedy}` },
  ])
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', '/users?search=carl')).body.data).toEqual([])
})

test('a file invites more people by mail than an administrator may, and is charged nothing for them', async () => {
  const app = await startApp({}, { mail: captureMail() })
  const users = Array.from({ length: 510 }, (_, i) => ({
    username: `user${i}`,
    email: `user${i}@example.com`,
    invite: 'mail',
  }))
  expect(await applySeed(app.context, readSeed({ users }), { dry_run: true })).toHaveLength(510)
  expect(await applySeed(app.context, readSeed({ users }))).toHaveLength(510)
  const { invitations, mails } = await app.context.store.read(async q => ({
    invitations: await q.$count(q.tables.invitations),
    mails: await q.$count(q.tables.mails),
  }))
  expect({ invitations, mails }).toEqual({ invitations: 510, mails: 510 })
  const invitation = { delivery: 'mail', email: 'other@example.com' }
  expect((await app.admin('POST', '/invitations', invitation)).status).toBe(201)
})
