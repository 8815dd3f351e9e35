import { expect, test } from 'bun:test'
import { openCall } from '#src/http/call.ts'
import { AppError, retryLater } from '#src/lib/app-error.ts'
import { errorPage } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { startApp } from '#test/support/app.ts'
import { formOf, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, addUser, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme', {
  settings: { self_deletion: true, login_domains: ['acme.example'] },
})
await addUser(app, 'ada', { organization_id: acme.id })
const LOGIN = '/account?organization=acme'

test('PAG-64 the pages after a logout and a deletion lead to the login of the organization', async () => {
  const browser = openBrowser(app)
  const enter = async () => signIn(browser, await browser.get(LOGIN), 'ada')
  const out = await browser.follow(await browser.submit(await enter(), {}, '/account/logout'))
  expect(out.url).toBe('/account/signed-out?organization=acme')
  expect(out.html).toContain(`<a class="button primary" href="${LOGIN}">Sign in again</a>`)
  await enter()
  const data = await browser.get('/account/data')
  const gone = await browser.follow(await browser.submit(data, { username: 'ada' }, '/account/data/delete'))
  expect(gone.url).toBe('/account/deleted?organization=acme')
  expect(gone.html).toContain(`<a class="button primary" href="${LOGIN}">Use another account</a>`)
  expect((await browser.get(LOGIN)).heading).toBe('Sign in')
  for (const page of ['/account/signed-out', '/account/deleted'])
    for (const query of ['', '?organization=//evil.example', '?organization=a%26b=c'])
      expect((await browser.get(page + query)).html).toContain('<a class="button primary" href="/account">')
})

test('PAG-34 a page that is not there leads to the account, and a refused GET asks again without its query', async () => {
  const browser = openBrowser(app)
  expect((await browser.get('/account/nowhere')).html).toContain(
    '<a class="button primary" href="/account">Your account</a>',
  )
  const throttled = retryLater('rate_limited', 'Too many.', 40_000)
  const pageOf = (method: string) => {
    const request = new Request('http://localhost:8080/oauth/login?request=secret', { method })
    return errorPage(app.context, openCall(app.context, request), throttled).text()
  }
  const again = await pageOf('GET')
  expect(again).toContain('<a class="button primary" href="" data-wait="40">Try again</a>')
  expect(again).toMatch(/Wait 40.seconds, then try again/)
  expect(again).not.toContain('secret')
})

test.each([
  ['invalid_request', 400, 'This request can’t be read', undefined],
  ['request_timeout', 408, 'This request can’t be read', undefined],
  ['unsupported_media_type', 415, 'This request can’t be read', undefined],
  ['payload_too_large', 413, 'That’s too much at once', undefined],
  ['method_not_allowed', 405, 'This page can’t be opened that way', undefined],
  ['forbidden', 403, 'Something went wrong', ''],
  ['not_found', 404, 'There’s nothing here', '/account'],
  ['rate_limited', 429, 'Please wait a moment', ''],
  ['temporarily_unavailable', 503, 'We’ll be right back', ''],
  ['server_error', 500, 'Something went wrong', ''],
] as const)('PAG-34 the page of the refusal %s: %d, %s', async (code, status, heading, link) => {
  const call = openCall(app.context, new Request('http://localhost:8080/account'))
  const answer = errorPage(app.context, call, new AppError(code, 'No.', { headers: { 'retry-after': '7' } }))
  const html = await answer.text()
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, '7'])
  expect(/<h1>(.*?)<\/h1>/.exec(html)?.[1]).toBe(heading)
  expect(/class="button primary" href="([^"]*)"/.exec(html)?.[1]).toBe(link)
})

test.each([
  [119, '119\u00a0seconds'],
  [120, '2\u00a0minutes'],
  [121, '3\u00a0minutes'],
])('PAG-34 a page that asks to wait %d s says “%s”', async (seconds, text) => {
  const call = openCall(app.context, new Request('http://localhost:8080/account'))
  const page = errorPage(app.context, call, retryLater('rate_limited', 'Too many.', seconds * 1_000))
  expect(await page.text()).toContain(`Wait ${text}, then try again.`)
})

test('PAG-34 a refused form leads back to its page, from another site to the account', async () => {
  const browser = openBrowser(app)
  const sent = async (path: string, referer: string, body = 'a=1&a=2') => {
    const page = await browser.post(path, body, { referer })
    return /class="button primary" href="([^"]*)"[^>]*>([^<]*)/.exec(page.html)?.slice(1)
  }
  const own = 'http://localhost:8080/oauth/second-factor?request=r'
  const large = `username=${'x'.repeat(1 << 20)}`
  expect(await sent('/oauth/second-factor', own, large)).toEqual([
    '/oauth/second-factor?request=r',
    'Try again',
  ])
  expect(await sent('/oauth/second-factor', own)).toEqual(['/oauth/second-factor?request=r', 'Try again'])
  for (const referer of ['', 'https://evil.example/oauth/login', 'http://localhost:8080.evil.example/'])
    expect(await sent('/oauth/second-factor', referer)).toBeUndefined()
  for (const referer of ['', 'https://evil.example/oauth/login', 'http://localhost:8080/console/x'])
    expect(await sent('/oauth/second-factor', referer, large)).toEqual(['/account', 'Your account'])
})

test('PAG-34 a form that was refused before leads back to its page, although the Referer does not name it', async () => {
  const ip = '192.0.2.77'
  const browser = openBrowser(app, { ip })
  const user = await addUser(app, 'eve')
  const { invitation_url: url } = await create(app, '/invitations', { delivery: 'link' })
  const person = { first_name: 'Bob', last_name: 'Roe', username: 'bob', email: 'bob@example.com' }
  const send = (page: Page, fields: Record<string, string>) => {
    const form = page.forms.find(each => 'password' in each.fields) ?? formOf(page)
    const referer = app.context.config.url + form.action
    return browser.post(form.action, { ...form.fields, ...fields }, { referer })
  }
  const opened = [
    await browser.get(await signInLink(app, user)),
    await browser.submit(await browser.get(url), person),
    await browser.get('/account'),
  ]
  const refused: Page[] = []
  for (const page of opened) refused.push(await send(page, { password: 'short', password_repeat: 'short' }))
  expect(refused.map(({ status, url }) => [status, url])).toEqual([
    [400, '/account/sign-in'],
    [400, '/account/invitation'],
    [400, '/oauth/login'],
  ])
  const { networks } = app.context.charges
  networks.take(`hash:${ip}`, { burst: 300, per_second: 2 }, app.clock.now(), 300)
  networks.take(`commit:${ip}`, { burst: 1_000, per_second: 5 }, app.clock.now(), 1_000)
  for (const page of refused) {
    const chosen = { password: PASSWORD, password_repeat: PASSWORD }
    const late = await send(
      page,
      page.url === '/oauth/login' ? { ...chosen, username: 'eve@acme.example' } : chosen,
    )
    expect([late.url, late.status, late.heading]).toEqual([page.url, 429, 'Please wait a moment'])
    const [, link = ''] = /class="button primary" href="([^"]*)"/.exec(late.html) ?? []
    const again = await browser.get(unescapeHtml(link))
    expect([again.url.split('?')[0], again.status]).toEqual([page.url, 200])
    expect(formOf(again).action).toBe(page.url)
  }
})

test('PAG-34 a form that is refused or too old leads to the account', async () => {
  const browser = openBrowser(app)
  const link = '<a class="button primary" href="/account">Your account</a>'
  const refused = await browser.post('/account/logout', { csrf_token: 'x.y' })
  expect([refused.status, refused.html.includes(link)]).toEqual([403, true])
  const page = await browser.get(LOGIN)
  const action = /name="request" value="([^"]+)"/.exec(page.html)?.[1]
  const old = await browser.get(`/oauth/login?request=${action?.replace(/./, 'x')}`)
  expect([old.status, old.html.includes('button primary')]).toEqual([400, true])
})

test('PAG-63 mistakes that people make show no request id, failures of an application or the server do', async () => {
  const browser = openBrowser(app)
  const login = await browser.get(LOGIN)
  const pages = [
    await browser.submit(login, { username: 'nobody', password: 'wrong' }),
    await browser.submit(login, { username: '', password: PASSWORD }),
    await browser.get('/nothing'),
    await browser.get('/account/continue?request=x'),
    await browser.get('/account/set-up?token=x'),
    await browser.post('/oauth/login', { csrf_token: 'x.y' }),
    await browser.get('/oauth/authorize?client_id=nobody'),
    await browser.get('/oauth/authorize?client_id=a&client_id=b'),
  ]
  const shows = ({ html, headers }: Page) => html.includes(headers.get('x-request-id') ?? 'none')
  expect(pages.map(page => [page.status, shows(page)])).toEqual([
    [401, false],
    [400, false],
    [404, false],
    [400, false],
    [410, false],
    [403, false],
    [400, true],
    [400, true],
  ])
  const call = openCall(app.context, new Request(app.context.config.url))
  expect(await errorPage(app.context, call, new Error('a fault')).text()).toContain(call.request_id)
})

test.each([
  ['busy', true],
  ['throttled', false],
  ['invalid_credentials', false],
  ['missing', false],
  ['provider', false],
] as const)('PAG-63 an alert "%s" shows the request id: %p', async (code, shown) => {
  const form = { action: '/', request: '', csrf_token: '', brand: { name: 'Acme' } }
  const page = render('login', { ...form, error: { code, seconds: 5 }, request_id: 'id-7' })
  expect((await page.text()).includes('Request ID id-7')).toBe(shown)
})
