import { describe, expect, spyOn, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { createSetUpLink } from '#src/links/links.ts'
import { needsAdmin } from '#src/operations/first-start.ts'
import { startApp } from '#test/support/app.ts'
import { formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addUser, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const DEVICE = 'gatehouse_device_8080'
const app = await startApp()
const ada = await addUser(app, 'ada')
const NEW = 'Another-horse-8'
const choose = { password: NEW, password_repeat: NEW }

const links = () => app.context.store.read(async q => q.select().from(q.tables.links))
const users = () => app.context.store.read(async q => q.select().from(q.tables.users))
const gone = { status: 410, heading: 'This link doesn’t work any more' }

describe('a sign-in link', () => {
  const open = async (user = ada) => {
    const browser = openBrowser(app)
    return { browser, page: await browser.get(await signInLink(app, user)) }
  }

  test('signs the user in once, with a new password', async () => {
    const user = await addUser(app, 'lost')
    const url = await signInLink(app, user)
    expect(url).toMatch(/^http:\/\/localhost:8080\/account\/sign-in\?token=[\w-]{43}$/)
    const browser = openBrowser(app)
    const page = await browser.get(url)
    expect(page.heading).toBe('Choose how you sign in')
    await app.events()
    const account = await browser.follow(await browser.submit(page, choose))
    expect(account.heading).toBe('Your account')
    expect((await app.events()).map(({ type, actor_id, target_id }) => [type, actor_id, target_id])).toEqual([
      ['user.password_changed', user.id, user.id],
      ['user.login', user.id, user.id],
    ])
    expect(await browser.get(url)).toMatchObject(gone)
    expect(await browser.submit(page, choose)).toMatchObject(gone)
    const later = openBrowser(app)
    expect((await signIn(later, await later.get('/account'), 'lost', NEW)).heading).toBe('Your account')
  })

  test('O-35 makes its browser known, so that strangers’ guesses do not lock the owner out there', async () => {
    const user = await addUser(app, 'besieged')
    const guess = async () => {
      for (let i = 0; i < 6; i++)
        for (const name of [user.username, user.email]) {
          const stranger = openBrowser(app, { ip: `198.51.100.${i}` })
          await signIn(stranger, await stranger.get('/account'), name, 'Wrong-horse-7')
        }
    }
    await guess()
    const home = { ip: '192.0.2.77' }
    const browser = openBrowser(app, home)
    await browser.submit(await browser.get(await signInLink(app, user)), choose)
    await guess()
    const far = openBrowser(app, { ip: '198.51.100.0' })
    for (let i = 0; i < 5; i++) await signIn(far, await far.get('/account'), user.username, 'Wrong-horse-7')
    expect((await signIn(far, await far.get('/account'), user.username, NEW)).status).toBe(429)
    for (const name of [user.username, user.email]) {
      const phone = openBrowser(app, home)
      phone.cookies.set(DEVICE, browser.cookies.get(DEVICE) ?? '')
      expect((await signIn(phone, await phone.get('/account'), name, NEW)).heading).toBe('Your account')
    }
  })

  test('O-35 ends the wait of a known browser after wrong passwords', async () => {
    const user = await addUser(app, 'forgetful')
    const browser = openBrowser(app, { ip: '192.0.2.78' })
    await signIn(browser, await browser.get('/account'), user.username)
    browser.cookies.delete('gatehouse_login_8080')
    for (let i = 0; i < 5; i++)
      await signIn(browser, await browser.get('/account'), user.username, 'Wrong-horse-7')
    expect((await signIn(browser, await browser.get('/account'), user.username)).status).toBe(429)
    await browser.submit(await browser.get(await signInLink(app, user)), choose)
    browser.cookies.delete('gatehouse_login_8080')
    const account = await signIn(browser, await browser.get('/account'), user.username, NEW)
    expect(account.heading).toBe('Your account')
  })

  test('is not used up by being opened: scanners and previews open links too', async () => {
    const user = await addUser(app, 'scanned')
    const url = await signInLink(app, user)
    for (let i = 0; i < 5; i++) expect((await openBrowser(app).get(url)).status).toBe(200)
    const browser = openBrowser(app)
    expect((await browser.submit(await browser.get(url), choose)).location).toBe('/account')
  })

  test('stays valid after a refused password', async () => {
    const { browser, page } = await open()
    const again = await browser.submit(page, { password: 'short', password_repeat: 'short' })
    expect([again.status, again.heading]).toEqual([400, 'Choose how you sign in'])
    expect((await browser.submit(again, choose)).location).toBe('/account')
  })

  test('PEO-41 accepts the current password like any other', async () => {
    const { browser, page } = await open()
    const same = { password: PASSWORD, password_repeat: PASSWORD }
    expect((await browser.submit(page, same)).location).toBe('/account')
    expect(await browser.submit(page, choose)).toMatchObject(gone)
  })

  test('lasts 30 minutes', async () => {
    const { browser, page } = await open()
    app.clock.advance(30 * MINUTE)
    expect(await browser.submit(page, choose)).toMatchObject(gone)
  })

  test('succeeds for only one of fifty uses at once', async () => {
    const { browser, page } = await open(await addUser(app, 'raced'))
    const answers = await Promise.all(Array.from({ length: 50 }, () => browser.submit(page, choose)))
    expect(answers.filter(({ location }) => location === '/account')).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(49)
  })

  test('O-28 is bound to the browser that opened it, and to its own page', async () => {
    const { browser, page } = await open(await addUser(app, 'fixed'))
    const { fields, action } = formOf(page)
    const before = await users()
    const victim = openBrowser(app)
    await victim.get('/account')
    expect((await victim.post(action, { ...fields, ...choose })).status).toBe(403)
    expect((await openBrowser(app).post(action, { ...fields, ...choose })).status).toBe(403)
    expect((await browser.submit(page, { ...choose, csrf_token: '' })).status).toBe(403)
    const other = await open(ada)
    const { token = '' } = formOf(other.page).fields
    expect((await browser.submit(page, { ...choose, token })).status).toBe(403)
    expect((await browser.post(action, { ...fields, ...choose }, { origin: 'null' })).status).toBe(403)
    expect(await users()).toEqual(before)
  })

  test('is refused for a disabled or deleted user', async () => {
    const user = await addUser(app, 'leaving')
    const { browser, page } = await open(user)
    const url = await signInLink(app, user)
    await app.admin('PUT', `/users/${user.id}`, { enabled: false })
    expect(await browser.get(url)).toMatchObject(gone)
    expect(await browser.submit(page, choose)).toMatchObject(gone)
    await app.admin('DELETE', `/users/${user.id}`)
    expect(await browser.get(url)).toMatchObject(gone)
  })

  test('does not work as a set-up link (M-04), and its token is stored as a digest', async () => {
    const url = await signInLink(app, ada)
    expect(await openBrowser(app).get(url.replace('sign-in', 'set-up'))).toMatchObject(gone)
    expect(JSON.stringify(await links())).not.toContain(new URL(url).searchParams.get('token') ?? 'missing')
  })

  test.each([[''], ['?token='], ['?token=junk'], [`?token=${'A'.repeat(10_000)}`]])(
    '%j is not a link',
    async query => {
      expect(await openBrowser(app).get(`/account/sign-in${query}`)).toMatchObject(gone)
    },
  )
})

describe('the set-up link', () => {
  const first = {
    username: 'root',
    email: 'root@example.com',
    first_name: 'Rita',
    last_name: 'Root',
    password: NEW,
    password_repeat: NEW,
  }
  const open = async (anew = app) => {
    const browser = openBrowser(anew)
    return { browser, page: await browser.get(await createSetUpLink(anew.context)) }
  }
  const done = { status: 410, heading: 'There’s an administrator already' }

  test.each([
    ['username', 'x', 'Use 3 to 128'],
    ['username', '', 'Fill this in'],
    ['username', 'ADA', 'This is already taken'],
    ['email', 'nowhere', 'Enter an email address'],
    ['email', 'ada@example.com', 'This is already taken'],
    ['first_name', '', 'Fill this in'],
    ['last_name', 'x'.repeat(300), 'at most 255 characters'],
    ['last_name', 'Byron\u0007', 'no control characters'],
    ['password', 'Password1!', 'breaks a rule'],
    ['password', `${NEW}\u001b`, 'No control characters <span class="unseen">(not met)'],
    ['password_repeat', 'x', 'not the same'],
  ])('%s %j is refused, and the form can be sent again', async (name, value, text) => {
    const { browser, page } = await open()
    const before = await users()
    await app.events()
    const again = await browser.submit(page, { ...first, [name]: value })
    expect(again.status).toBe(400)
    expect(again.html).toContain(text)
    expect(again.html).not.toContain(NEW)
    expect(formOf(again).fields.email).toBe(name === 'email' ? value : first.email)
    expect(await users()).toEqual(before)
    expect(await app.events()).toEqual([])
  })

  test('makes the first administrator once, signed in', async () => {
    const anew = await startApp()
    const spare = await open(anew)
    const { browser, page } = await open(anew)
    await anew.events()
    const made = await browser.submit(page, first)
    expect(made.location).toBe('/console')
    expect((await browser.get('/account')).heading).toBe('Your account')
    const [user] = await anew.context.store.read(async q => q.select().from(q.tables.users))
    expect(user).toMatchObject({ organization_id: 'org_default', enabled: true, password_temporary: false })
    // A login is recorded once, at its first use. Here the account page uses the login first. Usually the
    // console uses the login first, when it redeems its code.
    expect((await anew.events()).map(({ type, actor_id, target_id }) => [type, actor_id, target_id])).toEqual(
      [
        ['user.created', null, user?.id ?? ''],
        ['user.login', user?.id ?? '', user?.id ?? ''],
      ],
    )
    const { body } = await anew.admin('GET', `/users/${user?.id}`)
    expect(body.roles).toEqual(['admin'])
    const second = { ...first, username: 'second', email: 'second@example.com' }
    const ended = await browser.submit(page, second)
    expect(ended).toMatchObject(done)
    expect(ended.html).toContain('<a class="button primary" href="/account">Sign in</a>')
    // A set-up link that was printed earlier has become invalid.
    expect(await spare.browser.submit(spare.page, second)).toMatchObject(done)
    expect(await anew.context.store.read(async q => q.select().from(q.tables.links))).toEqual([])
  })

  test('H-13 is not valid while a user holds the role admin through a group', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    expect(await needsAdmin(anew.context)).toBe(true)
    const user = await addUser(anew, 'member')
    const group = await create(anew, '/groups', { name: 'operators', roles: ['admin'] })
    expect(await needsAdmin(anew.context)).toBe(true)
    await anew.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    expect(await needsAdmin(anew.context)).toBe(false)
    await anew.events()
    expect(await browser.submit(page, first)).toMatchObject(done)
    expect(await anew.events()).toEqual([])
  })

  test('is not valid once there is an administrator, however created', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    await addUser(anew, 'made', { roles: ['admin'] })
    await anew.events()
    expect(await browser.submit(page, first)).toMatchObject(done)
    expect((await open(anew)).page).toMatchObject(done)
    expect(await anew.events()).toEqual([])
  })

  test('makes no user when another administrator is created during the hashing', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    const other = await addUser(anew, 'other')
    const hash = spyOn(Bun.password, 'hash').mockImplementationOnce(async (...args) => {
      await anew.admin('PUT', `/users/${other.id}`, { roles: ['admin'] })
      return Bun.password.hash(...args)
    })
    expect(await browser.submit(page, first)).toMatchObject(done)
    hash.mockRestore()
    const { body } = await anew.admin('GET', '/users')
    expect(body.data).toHaveLength(1)
  })

  test('reports a password that is too long together with its other broken rules', async () => {
    const { browser, page } = await open(await startApp())
    const password = 'x'.repeat(1025)
    const { html } = await browser.submit(page, { ...first, password, password_repeat: password })
    for (const rule of ['At most 1024 bytes', 'A number'])
      expect(html).toContain(`${rule} <span class="unseen">(not met)`)
  })

  test('names the allowed domains as the reason, and can be sent again', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    const settings = { allowed_domains: ['northwind.example'] }
    expect((await anew.admin('PUT', '/organizations/org_default', { settings })).status).toBe(200)
    const refused = await browser.submit(page, first)
    expect([refused.status, refused.heading]).toEqual([400, 'Create the first administrator'])
    expect(refused.html).toContain('Use an address of your organization')
    const again = await browser.submit(refused, { ...first, email: 'root@northwind.example' })
    expect(again.location).toBe('/console')
  })

  test('the same form sent twice at once makes one administrator, and the other answer says so', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    const answers = await Promise.all([browser.submit(page, first), browser.submit(page, first)])
    expect(answers.filter(({ location }) => location === '/console')).toHaveLength(1)
    expect(answers.find(({ location }) => location !== '/console')).toMatchObject(done)
  })

  test('fifty uses at once make one administrator', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        browser.submit(page, { ...first, username: `root${i}`, email: `root${i}@example.com` }),
      ),
    )
    expect(answers.filter(({ location }) => location === '/console')).toHaveLength(1)
    const { body } = await anew.admin('GET', '/users')
    expect(body.data).toHaveLength(1)
  })

  test('PAG-02 lasts 30 minutes and asks for its own form', async () => {
    const anew = await startApp()
    const { browser, page } = await open(anew)
    expect((await browser.submit(page, { ...first, csrf_token: 'junk' })).status).toBe(403)
    anew.clock.advance(30 * MINUTE)
    expect(await browser.submit(page, first)).toMatchObject(gone)
  })
})
