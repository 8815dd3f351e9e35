import { describe, expect, test } from 'bun:test'
import { captureMail } from '#src/mail/captured.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, signIn } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'

const CONNECT = 'gatehouse client create NAME --kind web --redirect URL'
const ADD = 'gatehouse user create NAME --email ADDRESS'
const MAIL = ['GATEHOUSE_SMTP_URL=smtps://USER:PASSWORD@HOST', 'GATEHOUSE_MAIL_FROM=ADDRESS']

/** Returns the lines that the page offers for copying. Leaves out the parts about addresses and the guide. */
const commandsOf = ({ html }: Page): string[] =>
  [...html.matchAll(/<div id="next-(?:client|user|mail)">(.*?)<\/div>/gs)].flatMap(([, lines = '']) =>
    [...lines.matchAll(/<code[^>]*>(.*?)<\/code>/g)].map(([, text = '']) =>
      unescapeHtml(text.replace(/<[^>]*>/g, '')),
    ),
  )

const overviewOf = async (app: TestApp, user: { username: string }, organization = 'default') => {
  const browser = openBrowser(app)
  const page = await signIn(
    browser,
    await browser.get(`/account?organization=${organization}`),
    user.username,
  )
  expect(page.heading).toBe('Your account')
  return { browser, page }
}

const shown = async (browser: Browser): Promise<string[]> => commandsOf(await browser.get('/account'))

/** An instance whose only user is its administrator. */
const withAdmin = async (...parts: Parameters<typeof startApp>) => {
  const app = await startApp(...parts)
  const admin = await addUser(app, 'ada', { roles: ['admin'] })
  return { app, admin, ...(await overviewOf(app, admin)) }
}

describe('PAG-50 next steps', () => {
  test('are shown to the first administrator, each until it is done', async () => {
    const { app, browser, page } = await withAdmin()
    expect(commandsOf(page)).toEqual([CONNECT, ADD, ...MAIL])
    for (const text of [
      'on the server’s machine',
      '>http://localhost:8080<',
      '>http://localhost:8080/.well-known/openid-configuration<',
      '>gatehouse guide connect<',
      'nobody can reset a forgotten password',
    ])
      expect(page.html.replace(/<wbr>|<.?span[^>]*>/g, '')).toContain(text)
    await addClient(app, 'shop')
    expect(await shown(browser)).toEqual([ADD, ...MAIL])
    await addUser(app, 'eve')
    const rest = await browser.get('/account')
    expect(commandsOf(rest)).toEqual(MAIL)
    expect(rest.html).not.toContain('on the server’s machine')
  })

  test('say nothing of mail where it is on, and are gone when all is done', async () => {
    const { app, browser, page } = await withAdmin({}, { mail: captureMail() })
    expect(commandsOf(page)).toEqual([CONNECT, ADD])
    const { client_id } = await addClient(app, 'shop')
    await addUser(app, 'eve')
    expect((await browser.get('/account')).html).not.toContain('Next steps')
    await app.admin('DELETE', `/clients/${client_id}`)
    expect(await shown(browser)).toEqual([CONNECT])
  })

  test('count no client that nobody signs in to', async () => {
    const { app, browser } = await withAdmin()
    const service = { redirect_uris: [], grant_types: ['client_credentials'], scopes: [] }
    for (const name of ['worker', 'sync']) await addClient(app, name, service)
    expect((await app.admin('DELETE', '/clients/gatehouse-admin')).status).toBe(204)
    expect(await shown(browser)).toEqual([CONNECT, ADD, ...MAIL])
  })

  test('are those of the instance for an operator, and those of the organization for a tenant', async () => {
    const { app, browser } = await withAdmin()
    const { id: organization_id } = await addOrganization(app, 'acme')
    const amy = await addUser(app, 'amy', { organization_id, roles: ['admin'] })
    const tenant = await overviewOf(app, amy, 'acme')
    expect(commandsOf(tenant.page)).toEqual([`${CONNECT} --organization acme`, `${ADD} --organization acme`])
    expect(tenant.page.html).toContain('ask the people who run the server')
    expect(await shown(browser)).toEqual([CONNECT, ...MAIL])
    await addClient(app, 'shop')
    expect(await shown(tenant.browser)).toHaveLength(2)
    await addClient(app, 'crm', { organization_id })
    expect(await shown(tenant.browser)).toEqual([`${ADD} --organization acme`])
    await addUser(app, 'bob', { organization_id })
    expect((await tenant.browser.get('/account')).html).not.toContain('Next steps')
  })

  test('need a permission each, which is looked up at each visit', async () => {
    const app = await startApp()
    const roles = { hiring: ['users:create'], setting: ['settings:update'], viewing: ['users:read'] }
    for (const [name, permissions] of Object.entries(roles))
      await app.admin('POST', '/roles', { name, permissions: ['profile:read', ...permissions] })
    const { id } = await addUser(app, 'ada', { roles: ['hiring'] })
    const { browser, page } = await overviewOf(app, { username: 'ada' })
    expect(commandsOf(page)).toEqual([ADD])
    const commandsAs = async (role: string) => {
      const { body } = await app.admin('GET', `/users/${id}`)
      await app.admin('PUT', `/users/${id}`, { ...body, roles: [role] })
      return shown(browser)
    }
    expect(await commandsAs('setting')).toEqual(MAIL)
    expect(await commandsAs('viewing')).toEqual([])
    expect(await commandsAs('user')).toEqual([])
    expect(await commandsAs('admin')).toEqual([CONNECT, ADD, ...MAIL])
  })

  test('run no statement for people without these permissions', async () => {
    let asked = 0
    const stop = hearStatements(text => {
      if (text.includes('"counters"')) asked++
    })
    const { app, browser } = await withAdmin()
    const eve = await overviewOf(app, await addUser(app, 'eve'))
    const askedFor = async (viewer: Browser) => {
      asked = 0
      await viewer.get('/account')
      return asked
    }
    expect([await askedFor(eve.browser), await askedFor(browser)]).toEqual([0, 1])
    stop()
  })
})
