import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { type Browser, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD, signIn } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const gone = { status: 410, heading: 'This link doesn’t work any more' }
const person = { first_name: 'Bob', last_name: 'Roe', username: 'bob', email: 'bob@example.com' }
const chosen = { password: PASSWORD, password_repeat: PASSWORD }

let made = 0
/** Returns a person with unique names. */
const somebody = () => {
  const username = `person-${++made}`
  return { ...person, username, email: `${username}@example.com` }
}

const invite = (body: Json = {}): Promise<Json> => create(app, '/invitations', { delivery: 'link', ...body })

const users = () => app.context.store.read(async q => q.select().from(q.tables.users))
const userNamed = async (username: string) => {
  const user = (await users()).find(each => each.username === username)
  if (!user) throw new Error(`no user ${username}`)
  return user
}
const status = async ({ id }: Json): Promise<string> =>
  (await app.admin('GET', `/invitations/${id}`)).body.status

const open = async (url: string) => {
  const browser = openBrowser(app)
  return { browser, page: await browser.get(url) }
}

/** Fills in the first page and returns the second page. */
const introduce = async (url: string, who: Json = somebody()) => {
  const { browser, page } = await open(url)
  return { browser, page: await browser.submit(page, who) }
}

const optionsOf = ({ html }: Page): Json =>
  JSON.parse(unescapeHtml(/data-options="([^"]*)"/.exec(html)?.[1] ?? '{}'))

/** Submits the form of the page that has a field of this name. */
const send = (browser: Browser, page: Page, field: string, fields: Record<string, string> = {}) =>
  browser.submit({ ...page, forms: page.forms.filter(form => Object.hasOwn(form.fields, field)) }, fields)

const accept = (browser: Browser, page: Page): Promise<Page> => send(browser, page, 'password', chosen)

const acceptAndFollow = async (browser: Browser, page: Page): Promise<Page> =>
  browser.follow(await accept(browser, page))

beforeEach(async () => {
  await app.events()
})

describe('an invitation', () => {
  test('PEO-01 makes a user with its roles and groups, signed in', async () => {
    const group = await create(app, '/groups', { name: 'Sales' })
    const invitation = await invite({ roles: ['user'], groups: [group.id] })
    expect(invitation.invitation_url).toMatch(
      /^http:\/\/localhost:8080\/account\/invitation\?token=[\w-]{43}$/,
    )
    await app.events()
    const who = somebody()
    const { browser, page } = await introduce(invitation.invitation_url, who)
    expect(page.heading).toBe('Create your account')
    expect((await acceptAndFollow(browser, page)).heading).toBe('Your account')
    const user = await userNamed(who.username)
    expect(user).toMatchObject({ email: who.email, email_verified: false, enabled: true })
    const events = await app.events()
    expect(events.map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['user.created', user.id],
      ['invitation.accepted', user.id],
      ['group.updated', 'gatehouse-admin'],
      ['user.login', user.id],
    ])
    expect((await app.admin('GET', `/invitations/${invitation.id}`)).body).toMatchObject({
      status: 'accepted',
      uses: 1,
      accepted_by: [{ user_id: user.id }],
    })
    expect((await app.admin('GET', `/groups/${group.id}/members`)).body.data).toHaveLength(1)
  })

  test('PEO-01 lets the person choose a passkey, which signs them in later, and shows recovery codes', async () => {
    const who = somebody()
    const { browser, page } = await introduce((await invite()).invitation_url, who)
    const options = optionsOf(page)
    expect(options.authenticatorSelection).toEqual({ residentKey: 'required', userVerification: 'required' })
    const passkey = newPasskey()
    const weak = newPasskey().create(options, { verified: false })
    expect(await send(browser, page, 'credential', { credential: weak })).toMatchObject({ status: 400 })
    const codes = await send(browser, page, 'credential', { credential: passkey.create(options) })
    expect(codes.heading).toBe('Save your recovery codes')
    expect((await browser.get('/account')).heading).toBe('Your account')
    const user = await userNamed(who.username)
    expect(user.password_hash).toBeNull()
    const later = openBrowser(app)
    const login = await later.get('/account')
    const credential = passkey.get(optionsOf(login))
    expect((await later.follow(await later.submit(login, { credential }, '/oauth/passkey'))).heading).toBe(
      'Your account',
    )
  })

  test('PEO-02 by mail verifies the address, which the person cannot change', async () => {
    const { email } = somebody()
    const invitation = await create(app, '/invitations', { delivery: 'mail', email, locale: 'de' })
    expect(invitation.invitation_url).toBeUndefined()
    await deliverMails(app.context)
    const letter = mail.mails.at(-1)
    expect(letter).toMatchObject({ to: email, subject: expect.stringContaining('Einladung') })
    const url = /http:\S+/.exec(letter?.text ?? '')?.[0] ?? ''
    const { browser, page } = await introduce(url, { ...somebody(), email: 'other@example.com' })
    await accept(browser, page)
    expect((await users()).find(user => user.email === email)).toMatchObject({ email_verified: true })
    expect((await users()).some(user => user.email === 'other@example.com')).toBe(false)
  })
})

test('USR-22 an invitation for one person, with its address, is deleted with the user', async () => {
  const { email } = somebody()
  const alone = await invite({ email })
  const shared = await invite({ max_uses: 2 })
  for (const { id, invitation_url } of [alone, shared]) {
    const { browser, page } = await introduce(invitation_url)
    expect((await accept(browser, page)).status).toBe(303)
    const { accepted_by, user_id } = (await app.admin('GET', `/invitations/${id}`)).body
    expect(user_id).toBe(id === alone.id ? accepted_by[0].user_id : null)
    expect((await app.admin('DELETE', `/users/${accepted_by[0].user_id}`)).status).toBe(204)
  }
  expect((await app.admin('GET', `/invitations/${alone.id}`)).status).toBe(404)
  expect((await app.admin('GET', `/invitations/${shared.id}`)).body).toMatchObject({
    uses: 1,
    accepted_by: [],
  })
})

describe('a user without a password', () => {
  const invited = (invite: 'mail' | 'link', more: Json = {}) =>
    create(app, '/users', { ...somebody(), roles: ['user'], invite, ...more })

  test('PEO-06 is created at once, and chooses a password behind the link', async () => {
    const created = await invited('link')
    expect(await userNamed(created.username)).toMatchObject({ password_hash: null, last_login: null })
    const { browser, page } = await open(created.invitation_url)
    expect(page.forms.some(({ fields }) => Object.hasOwn(fields, 'edit'))).toBe(false)
    await app.events()
    expect((await acceptAndFollow(browser, page)).heading).toBe('Your account')
    expect((await app.events()).map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['user.password_changed', created.id],
      ['invitation.accepted', created.id],
      ['user.login', created.id],
    ])
    expect((await open(created.invitation_url)).page).toMatchObject(gone)
    expect(await userNamed(created.username)).toMatchObject({ email_verified: false })
  })

  test('PEO-06 by mail verifies the address', async () => {
    const created = await invited('mail')
    expect(created.invitation_url).toBeUndefined()
    await deliverMails(app.context)
    const { browser, page } = await open(/http:\S+/.exec(mail.mails.at(-1)?.text ?? '')?.[0] ?? '')
    await accept(browser, page)
    expect(await userNamed(created.username)).toMatchObject({ email_verified: true })
  })

  test('PEO-06 cannot use the link once there is another way in, another address, or no account', async () => {
    const changes: [string, (id: string) => Promise<{ status: number }>][] = [
      ['a password', id => app.admin('POST', `/users/${id}/reset-password`, { password: PASSWORD })],
      ['another address', id => app.admin('PUT', `/users/${id}`, { email: `moved-${made}@example.com` })],
      ['no right to sign in', id => app.admin('PUT', `/users/${id}`, { enabled: false })],
      ['no account', id => app.admin('DELETE', `/users/${id}`)],
    ]
    for (const [what, change] of changes) {
      const created = await invited('link')
      const late = await open(created.invitation_url)
      expect((await change(created.id)).status).toBeLessThan(300)
      expect([what, (await open(created.invitation_url)).page.status]).toEqual([what, 410])
      expect([what, (await accept(late.browser, late.page)).status]).toEqual([what, 410])
    }
  })

  test('PEO-06 a caller who may not change users gets no new link for a user', async () => {
    const greeter = await callerOf(app, 'org_default', ['users:create', 'users:read'])
    const mine = await create(app, '/users', { ...somebody(), roles: ['user'], invite: 'link' })
    const list = (await app.admin('GET', '/invitations?limit=100', undefined, greeter)).body.data
    const { id } = list.find((each: Json) => each.user_id === mine.id)
    await app.events()
    const { status, body } = await app.admin('POST', `/invitations/${id}/resend`, undefined, greeter)
    expect([status, body.error_description]).toEqual([
      403,
      'A new link for a user needs the permission users:update.',
    ])
    expect(await app.events()).toEqual([])
    expect((await open(mine.invitation_url)).page.status).toBe(200)
    expect((await app.admin('POST', `/invitations/${id}/resend`)).status).toBe(200)
  })

  test('PEO-06 has either a password or an invitation', async () => {
    const both = await app.admin('POST', '/users', { ...somebody(), password: PASSWORD, invite: 'link' })
    expect([both.status, both.body.details[0].field]).toEqual([422, 'invite'])
    const neither = await app.admin('POST', '/users', somebody())
    expect([neither.status, neither.body.details[0].field]).toEqual([422, 'password'])
  })
})

describe('an invitation that must not work', () => {
  test('PEO-03 works once, also for two people at the same moment', async () => {
    const { invitation_url } = await invite()
    const [one, two] = await Promise.all([introduce(invitation_url), introduce(invitation_url)])
    const answers = await Promise.all([accept(one.browser, one.page), accept(two.browser, two.page)])
    expect(answers.map(answer => answer.status).sort()).toEqual([303, 410])
    expect((await open(invitation_url)).page).toMatchObject(gone)
  })

  test('PEO-03 several people may accept a link that is for several; they get the role user', async () => {
    const invitation = await invite({ max_uses: 2 })
    for (let i = 0; i < 2; i++) {
      const { browser, page } = await introduce(invitation.invitation_url)
      expect((await acceptAndFollow(browser, page)).heading).toBe('Your account')
    }
    expect((await open(invitation.invitation_url)).page).toMatchObject(gone)
    expect(await status(invitation)).toBe('accepted')
  })

  test('PEO-03 a form that has made its user makes no other', async () => {
    const { id, invitation_url } = await invite({ max_uses: 5 })
    const { browser, page } = await open(invitation_url)
    const forms = await Promise.all([1, 2, 3].map(() => browser.submit(page, somebody())))
    const answers = await Promise.all(forms.map(form => accept(browser, form)))
    expect(answers.map(answer => answer.status).sort()).toEqual([303, 400, 400])
    const again = answers.find(answer => answer.status === 400)
    expect(again).toMatchObject({
      heading: 'This page has expired',
      html: expect.stringContaining(invitation_url),
    })
    expect((await app.admin('GET', `/invitations/${id}`)).body.uses).toBe(1)
  })

  test('PEO-03 ends when it expires, is withdrawn or gets a new link', async () => {
    const first = await invite({ expires_in: 86_400 })
    const opened = await introduce(first.invitation_url)
    app.clock.advance(DAY)
    expect((await open(first.invitation_url)).page).toMatchObject(gone)
    expect(await accept(opened.browser, opened.page)).toMatchObject(gone)
    expect(await status(first)).toBe('expired')
    const again = (await app.admin('POST', `/invitations/${first.id}/resend`)).body
    expect((await open(first.invitation_url)).page).toMatchObject(gone)
    expect((await open(again.invitation_url)).page.status).toBe(200)
    expect(again.expires_at).toBe(iso(app.clock.now() + DAY))
    expect((await app.admin('DELETE', `/invitations/${first.id}`)).status).toBe(204)
    expect((await open(again.invitation_url)).page).toMatchObject(gone)
    for (const [method, path] of [
      ['DELETE', ''],
      ['POST', '/resend'],
    ] as const)
      expect((await app.admin(method, `/invitations/${first.id}${path}`)).status).toBe(409)
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'invitation.created',
      'invitation.refused',
      'token.issued',
      'invitation.sent',
      'invitation.withdrawn',
    ])
  })

  test('PEO-03 each new link gets the lifetime that was chosen', async () => {
    const { id } = await invite({ expires_in: 86_400 })
    for (const wait of [DAY / 2, DAY / 4]) {
      app.clock.advance(wait)
      const { expires_at } = (await app.admin('POST', `/invitations/${id}/resend`)).body
      expect(expires_at).toBe(iso(app.clock.now() + DAY))
    }
  })

  test('PEO-44 a refused link is recorded with its reason, once an hour', async () => {
    const refusals = async () =>
      (await app.events())
        .filter(({ type }) => type === 'invitation.refused')
        .map(({ actor_id, target_id, metadata }) => [actor_id, target_id, metadata])
    const used = await invite()
    const { browser, page } = await introduce(used.invitation_url)
    await accept(browser, page)
    for (let i = 0; i < 2; i++) expect((await open(used.invitation_url)).page).toMatchObject(gone)
    expect(await refusals()).toEqual([[null, used.id, { reason: 'used_up' }]])
    app.clock.advance(HOUR)
    await open(used.invitation_url)
    expect(await refusals()).toEqual([[null, used.id, { reason: 'used_up' }]])
    const short = await invite({ expires_in: 3600 })
    app.clock.advance(HOUR)
    await open(short.invitation_url)
    expect(await refusals()).toEqual([[null, short.id, { reason: 'expired' }]])
    await open(`${short.invitation_url}x`)
    expect(await refusals()).toEqual([])
  })

  test('PEO-04 gives nothing once its maker is dismissed or has lost the rights', async () => {
    const maker = await addUser(app, 'maker', { roles: ['admin'] })
    const client = await addClient(app, 'desk', { scopes: ['openid', 'admin'] })
    const { access_token: token } = await grantTokens(app, client, maker, { scope: 'openid admin' })
    const { body } = await app.admin('POST', '/invitations', { delivery: 'link', roles: ['admin'] }, token)
    const late = await introduce(body.invitation_url)
    await app.admin('PUT', `/users/${maker.id}?confirm=maker`, { roles: ['user'] })
    expect((await open(body.invitation_url)).page).toMatchObject(gone)
    const before = (await users()).length
    expect(await accept(late.browser, late.page)).toMatchObject(gone)
    expect(await users()).toHaveLength(before)
    await app.admin('PUT', `/users/${maker.id}`, { roles: ['admin'] })
    expect((await open(body.invitation_url)).page.status).toBe(200)
    await app.admin('PUT', `/users/${maker.id}?confirm=maker`, { enabled: false })
    expect((await open(body.invitation_url)).page).toMatchObject(gone)
  })

  test('PEO-04 leads into groups only while its maker may add members to them', async () => {
    const group = await create(app, '/groups', { name: 'Writers' })
    await create(app, '/roles', { name: 'host', permissions: ['users:create', 'groups:update'] })
    await create(app, '/roles', { name: 'greeter', permissions: ['users:create'] })
    const maker = await addUser(app, 'host', { roles: ['host'] })
    const client = await addClient(app, 'reception', { scopes: ['openid', 'admin'] })
    const { access_token: token } = await grantTokens(app, client, maker, { scope: 'openid admin' })
    const into = { delivery: 'link', groups: [group.id] }
    const { body } = await app.admin('POST', '/invitations', into, token)
    const late = await introduce(body.invitation_url)
    await app.admin('PUT', `/users/${maker.id}`, { roles: ['greeter'] })
    const refused = await app.admin('POST', '/invitations', into, token)
    expect([refused.status, refused.body.error_description]).toEqual([
      403,
      'An invitation into a group needs the permission groups:update.',
    ])
    expect((await app.admin('POST', '/invitations', { delivery: 'link' }, token)).status).toBe(201)
    const other = await invite({ groups: [group.id] })
    expect((await app.admin('POST', `/invitations/${other.id}/resend`, undefined, token)).status).toBe(403)
    expect((await open(body.invitation_url)).page).toMatchObject(gone)
    expect(await accept(late.browser, late.page)).toMatchObject(gone)
    expect((await app.admin('GET', `/groups/${group.id}`)).body.member_count).toBe(0)
  })

  test('PEO-05 form of another browser, or for another invitation, is refused', async () => {
    const [one, other] = [await invite(), await invite()]
    const { page } = await introduce(one.invitation_url)
    const stranger = openBrowser(app)
    expect((await accept(stranger, page)).status).toBe(403)
    const mine = await introduce(one.invitation_url)
    const token = new URL(other.invitation_url).searchParams.get('token') ?? ''
    expect((await send(mine.browser, mine.page, 'password', { ...chosen, token })).status).toBe(403)
    expect(await app.events()).toEqual([
      expect.objectContaining({ type: 'invitation.created' }),
      expect.anything(),
    ])
  })

  test('PEO-05 takes no name that others have, no weak password, and no foreign domain', async () => {
    await addUser(app, 'taken')
    const acme = await addOrganization(app, 'acme', { settings: { allowed_domains: ['acme.example'] } })
    const { invitation_url } = await invite({ organization_id: acme.id })
    const refused = await introduce(invitation_url, { ...person, username: 'x' })
    expect(refused.page).toMatchObject({ status: 400 })
    const weak = await introduce((await invite()).invitation_url, { ...somebody(), username: 'taken' })
    expect(weak.page.status).toBe(400)
    const { browser, page } = await introduce((await invite()).invitation_url)
    expect(
      (await send(browser, page, 'password', { password: 'short', password_repeat: 'short' })).status,
    ).toBe(400)
    const foreign = await introduce(invitation_url)
    expect((await accept(foreign.browser, foreign.page)).status).toBe(400)
    const members = (await users()).filter(user => user.organization_id === acme.id)
    expect(members).toEqual([])
  })

  test('PEO-05 keeps the fields while the person goes back', async () => {
    const who = somebody()
    const { browser, page } = await introduce((await invite()).invitation_url, who)
    const back = await send(browser, page, 'edit')
    expect([back.status, back.forms[0]?.fields]).toEqual([200, expect.objectContaining(who)])
  })

  test('PEO-05 says who is signed in, and makes another account', async () => {
    const grace = await addUser(app, 'grace')
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account'), grace.username)
    const page = await browser.get((await invite()).invitation_url)
    expect(page.html).toContain('You are signed in as grace.')
  })
})
