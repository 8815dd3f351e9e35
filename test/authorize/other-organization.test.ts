import { beforeEach, describe, expect, test } from 'bun:test'
import { captureMail } from '#src/mail/captured.ts'
import type { Json, TestApp } from '#test/support/app.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'

let app: TestApp
let acme: Json
let amy: Json

const start = async (options: Parameters<typeof startApp>[1] = {}) => {
  app = await startApp({}, options)
  acme = await addOrganization(app, 'acme', {
    display_name: 'Acme Ltd',
    settings: { login_domains: ['acme.example', 'bücher.example'] },
  })
  await addUser(app, 'ada')
  await addUser(app, 'bob', { email: 'bob@acme.example' })
  amy = await addUser(app, 'amy', { organization_id: acme.id, email: 'amy@acme.example' })
  await addClient(app, 'web')
  await addClient(app, 'cross', { capabilities: ['cross_organization'] })
  await app.events()
}

beforeEach(() => start())

const loginRows = () => app.context.store.read(async q => q.select().from(q.tables.logins))
const hashBudget = () =>
  app.context.charges.networks.left('hash:192.0.2.10', { burst: 300, per_second: 2 }, app.clock.now())
const names = (page: Page) => Object.keys(formOf(page, '/oauth/login').fields).sort()

describe('an address of another organization’s login domain', () => {
  test.each(['amy@acme.example', ' AMY@Acme.Example ', 'amy@bücher.example'])(
    'PAG-66 at /account leads to its login, whatever the password: %s',
    async username => {
      const browser = openBrowser(app)
      const start = await browser.get('/account')
      expect(start.html).not.toContain('Acme Ltd')
      const before = hashBudget()
      const page = await browser.follow(
        await browser.submit(start, { username, password: PASSWORD }, '/oauth/login'),
      )
      expect([page.status, page.heading]).toEqual([200, 'Sign in'])
      expect(page.html).toContain('Acme Ltd')
      expect(page.html).not.toContain(PASSWORD)
      const { fields } = formOf(page, '/oauth/login')
      expect([fields.username, fields.password]).toEqual([username.trim(), ''])
      expect(before - hashBudget()).toBe(1)
      expect([await loginRows(), await app.events()]).toEqual([[], []])
    },
  )

  test('PAG-66 the password is asked for there, and the login is of that organization', async () => {
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get('/account'), 'amy@acme.example')
    const account = await signIn(browser, page, 'amy@acme.example')
    expect([account.url, account.heading]).toEqual(['/account', 'Your account'])
    expect(await loginRows()).toMatchObject([{ user_id: amy.id, organization_id: acme.id }])
    expect(await app.events()).toMatchObject([
      { type: 'user.login', actor_id: amy.id, organization_id: acme.id },
    ])
  })

  test('PAG-66 an existing login of another user there is not used', async () => {
    await addUser(app, 'alan', { organization_id: acme.id })
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account?organization=acme'), 'alan')
    await signIn(browser, await browser.get('/account?organization=default'), 'ada')
    const start = await browser.get(authorizeUrl('cross', { prompt: 'login' }))
    const page = await signIn(browser, start, 'amy@acme.example')
    expect([page.heading, page.html.includes('Acme Ltd')]).toEqual(['Sign in', true])
    const { code } = answerOf(await browser.submit(page, { password: PASSWORD }, '/oauth/login'))
    expect(await codeRow(app, code)).toMatchObject({ user_id: amy.id, organization_id: acme.id })
  })

  test('PAG-66 a code that was requested before is not asked for there', async () => {
    await start({ mail: captureMail() })
    for (const slug of ['default', 'acme'])
      await app.admin('PUT', `/organizations/${slug}`, {
        settings: { email_code: 'all', login_domains: slug === 'acme' ? ['acme.example'] : [] },
      })
    const browser = openBrowser(app)
    const form = await browser.get(linkWith(await browser.get('/account'), '/oauth/email-code'))
    const asked = await browser.follow(await browser.submit(form, { username: 'ada' }, '/oauth/email-code'))
    expect(asked.heading).toBe('Check your email')
    const again = await browser.get(linkWith(asked, 'again=1'))
    const moved = await browser.submit(again, { username: 'amy@acme.example' }, '/oauth/email-code')
    const page = await browser.get(linkWith(await browser.follow(moved), '/oauth/email-code'))
    expect([page.heading, page.html.includes('Acme Ltd')]).toEqual([form.heading, true])
    expect(formOf(page, '/oauth/email-code').fields.username).toBe('amy@acme.example')
  })

  test('PAG-66 a wrong password counts in that organization only', async () => {
    const browser = openBrowser(app)
    const page = await signIn(browser, await browser.get('/account'), 'amy@acme.example', 'wrong')
    expect(await app.events()).toEqual([])
    expect((await signIn(browser, page, 'amy@acme.example', 'wrong')).status).toBe(401)
    expect(await app.events()).toMatchObject([{ type: 'user.login_failed', organization_id: acme.id }])
  })

  test.each([
    ['a client of one organization', () => authorizeUrl('web')],
    [
      'a request that names the organization',
      () => authorizeUrl('cross', { organization_id: 'org_default' }),
    ],
    ['an account page that names the organization', () => '/account?organization=default'],
  ])('PAG-66 is verified where it was typed at %s', async (_, url) => {
    const browser = openBrowser(app)
    const page = await browser.get(url())
    expect(names(page)).toEqual(['csrf_token', 'password', 'request', 'username'])
    expect((await signIn(browser, page, 'amy@acme.example')).status).toBe(401)
    const own = await browser.submit(page, { username: 'bob@acme.example', password: PASSWORD })
    expect([302, 303]).toContain(own.status)
  })
})

describe('a typed organization', () => {
  const attempt = async (fields: Record<string, string>, url = '/account') => {
    const browser = openBrowser(app)
    const page = await browser.get(url)
    return { browser, page, answer: await browser.submit(page, fields, '/oauth/login') }
  }

  test('PAG-67 is asked for on one page with name and password, where there are several', async () => {
    const { page } = await attempt({ username: '' })
    expect(names(page)).toEqual(['csrf_token', 'organization', 'password', 'request', 'username'])
    await app.admin('DELETE', '/organizations/acme')
    expect(names(await openBrowser(app).get('/account'))).not.toContain('organization')
  })

  test.each([
    ['/account', ''],
    ['cross', 'cross'],
  ])('PAG-67 with its user and password is a login there: %s', async (_, client_id) => {
    const url = client_id ? authorizeUrl(client_id) : '/account'
    const { browser, answer } = await attempt(
      { organization: ' Acme ', username: 'amy', password: PASSWORD },
      url,
    )
    if (client_id) expect(await codeRow(app, answerOf(answer).code)).toMatchObject({ user_id: amy.id })
    else expect((await browser.follow(answer)).heading).toBe('Your account')
    expect(await loginRows()).toMatchObject([{ user_id: amy.id, organization_id: acme.id }])
  })

  test('PAG-67 gets the same answer after the same work, if it exists or not', async () => {
    const answers = []
    const fields = { username: 'ada', password: PASSWORD }
    for (const organization of ['acme', 'nowhere', 'org_default', 'a\\b', 'x'.repeat(500)]) {
      const before = hashBudget()
      const { answer } = await attempt({ ...fields, organization })
      const html = answer.html
        .replaceAll(organization, 'TYPED')
        .replaceAll(/own-[\w-]+|[0-9a-f]{8}-[0-9a-f-]{27}|(value|data-options)="[^"]{60,}"/g, '')
      answers.push({ status: answer.status, html, cost: before - hashBudget() })
    }
    expect(answers.map(({ status, cost }) => [status, cost])).toEqual(answers.map(() => [401, 1]))
    expect(new Set(answers.map(({ html }) => html)).size).toBe(1)
    expect(answers[0]?.html).not.toContain('Acme Ltd')
    expect(await loginRows()).toEqual([])
    const events = (await app.events()).map(({ type, organization_id, metadata }) => [
      type,
      organization_id,
      metadata.failure_reason,
    ])
    expect(events).toEqual([
      ['user.login_failed', acme.id, 'unknown_user'],
      ...answers.slice(1).map(() => ['user.login_failed', 'org_default', 'unknown_user']),
    ])
  })

  test('PAG-67 has the same wait after failures, if it exists or not', async () => {
    const waits = []
    for (const organization of ['acme', 'nowhere']) {
      const { browser, page } = await attempt({ organization, username: 'amy', password: 'wrong' })
      const statuses = []
      for (let n = 0; n < 6; n++)
        statuses.push(
          (await browser.submit(page, { organization, username: 'amy', password: 'wrong' })).status,
        )
      waits.push(statuses)
    }
    expect(waits[0]).toEqual(waits[1])
    expect(waits[0]).toContain(429)
  })

  test.each(['web', 'cross'])(
    'M-03 is ignored where the request names the organization: %s',
    async client_id => {
      const more = client_id === 'cross' ? { organization_id: 'org_default' } : {}
      const { answer } = await attempt(
        { organization: 'acme', username: 'amy', password: PASSWORD },
        authorizeUrl(client_id, more),
      )
      expect(answer.status).toBe(401)
      expect(await loginRows()).toEqual([])
    },
  )
})
