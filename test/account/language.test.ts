import { describe, expect, spyOn, test } from 'bun:test'
import { chooseLocale, locales } from '#src/http/locale.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { MessageKey } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { languageName, translator } from '#src/pages/translate.ts'
import { BASE, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { codeOf, enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { samples } from '#test/support/page-samples.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  signIn,
  signInLink,
} from '#test/support/people.ts'

const COOKIE = 'gatehouse_language_8080'
const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
const NEW = 'Another-horse-8'

/** Chooses a language in the footer of a page. `address` is the path that the browser shows. */
const choose = (browser: Browser, page: Page, language: string, address = page.url): Promise<Page> =>
  browser.post('/language', { ...page.chooser?.fields, language }, { referer: `${BASE}${address}` })

const says = (page: Page, locale: string, heading: MessageKey) =>
  expect([page.status, page.headers.get('content-language'), page.heading]).toEqual([
    200,
    locale,
    translator(locale)(heading),
  ])

describe('PAG-31 the footer of a page', () => {
  test('names each language in itself and marks the current one', async () => {
    const { html, chooser } = await openBrowser(app).get('/account', { 'accept-language': 'fr' })
    const footer = html.slice(html.indexOf('<footer>'))
    const buttons = [...footer.matchAll(/<button type="submit"([^>]*)>([^<]*)/g)].map(([, of = '', name]) => [
      ...['value', 'lang'].map(key => of.match(new RegExp(` ${key}="([^"]+)"`))?.[1]),
      of.includes('aria-current="true"'),
      name,
    ])
    expect(buttons).toEqual(locales.map(tag => [tag, tag, tag === 'fr', languageName(tag)]))
    expect(footer).toContain('<span class="unseen">Langue</span> <span lang="fr">Français</span></button>')
    expect(chooser?.action).toBe('/language')
    expect(['de', 'es', 'ja', 'pl', 'ar', 'pt-BR'].map(languageName)).toEqual([
      'Deutsch',
      'Español',
      '日本語',
      'Polski',
      'العربية',
      'Português (Brasil)',
    ])
  })

  test.each(samples.map(sample => [`${sample.page}.${sample.state}`, sample] as const))(
    '%s offers the languages unless the page is shown only once; a page with a request or token names the address to return to',
    async (name, { page, data }) => {
      const html = await render(page, data).text()
      const isShownOnce =
        page === 'recovery-codes' ||
        page === 'registration-waiting' ||
        ['reset-password.sent', 'sign-up.sent', 'verify-email.done'].includes(name)
      expect(html.includes('action="/language"')).toBe(!isShownOnce)
      const named = unescapeHtml(html.match(/name="page" value="([^"]+)"/)?.[1] ?? '')
      const isStep = /"(request|token)":"/.test(JSON.stringify(data))
      expect(named !== '').toBe(isStep && !isShownOnce)
      if (!named) return
      const answer = await openBrowser(app).post('/language', { page: named, language: 'de' })
      expect([answer.status, answer.location]).toEqual([303, named])
    },
  )
})

test('PAG-31 a chosen language keeps the organization of a forgotten password', async () => {
  const sample = samples.find(({ page, state }) => page === 'reset-password' && state === 'organization')
  if (!sample) throw new Error('there is no such sample')
  const html = await render(sample.page, { ...sample.data, organization: 'acme' } as never).text()
  const named = unescapeHtml(html.match(/name="page" value="([^"]+)"/)?.[1] ?? '')
  expect(named).toMatch(/^\/oauth\/reset-password\?request=[^&]+&organization=acme$/)
})

describe('PAG-31 the choice', () => {
  test('is a cookie of 400 days, costs nothing and is no event', async () => {
    const secure = await startApp({ url: 'https://id.example.com' })
    const charges = Object.values(secure.context.charges).map(buckets => spyOn(buckets, 'take'))
    const charged = () => charges.reduce((sum, { mock }) => sum + mock.calls.length, 0)
    await secure.events()
    const browser = openBrowser(secure)
    const answer = await browser.post(
      '/language',
      { language: 'de' },
      { referer: 'https://id.example.com/account' },
    )
    expect([answer.status, answer.location, answer.html]).toEqual([303, '/account', ''])
    const attributes = 'Path=/; HttpOnly; SameSite=Lax'
    expect(browser.received).toEqual([
      `__Host-gatehouse_language=de; ${attributes}; Secure; Max-Age=34560000`,
    ])
    const plain = openBrowser(app)
    await plain.post('/language', { language: 'ja' })
    expect(plain.received).toEqual([`${COOKIE}=ja; ${attributes}; Max-Age=34560000`])
    expect(await secure.events()).toEqual([])
    expect(charged()).toBe(0)
    await browser.get('/account')
    expect(charged()).toBeGreaterThan(0)
  })

  test('wins over ui_locales and Accept-Language, until the login is done, and for its mail', async () => {
    const user = await addUser(app, 'chooser')
    const browser = openBrowser(app, { headers: { 'accept-language': 'ja' } })
    const login = await browser.get(authorizeUrl('web', { ui_locales: 'fr' }))
    says(login, 'fr', 'login.title')
    const again = await browser.follow(await choose(browser, login, 'de'))
    says(again, 'de', 'login.title')
    expect(again.url).toBe(`/oauth/login?request=${login.forms[0]?.fields.request}`)
    const forgotten = await browser.get(linkWith(again, '/oauth/reset-password'))
    await browser.submit(forgotten, { username: user.username })
    mail.clear()
    await deliverMails(app.context)
    expect(mail.mails.map(({ subject }) => subject)).toEqual([
      translator('de')('mail.reset_password.subject', { brand: 'Gatehouse' }),
    ])
    const done = await signIn(browser, again, user.username)
    expect(done.location).toStartWith('https://app.example/callback?code=')
    says(await browser.get('/account'), 'de', 'account.title')
    const other = await addOrganization(app, 'elsewhere')
    await addUser(app, 'elsewhere', { organization_id: other.id })
    says(await browser.get('/account?organization=elsewhere'), 'de', 'login.title')
  })

  test.each([
    ['en', 'en'],
    ['xx', 'fr'],
    ['', 'fr'],
    ['../de', 'fr'],
    ['x'.repeat(4_000), 'fr'],
  ])('a cookie of %p gives %s', async (value, expected) => {
    const browser = openBrowser(app, { headers: { 'accept-language': 'fr' } })
    browser.cookies.set(COOKIE, value)
    says(await browser.get('/account/signed-out'), expected, 'logged-out.title')
    expect(chooseLocale([value, 'fr'], 'de')).toBe(expected)
  })
})

describe('PAG-31 the choice returns to its page', () => {
  test('to a step, also after its form was refused', async () => {
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('web'))
    const refused = await signIn(browser, login, 'nobody', 'Wrong-horse-7')
    expect(refused.status).toBe(401)
    says(await browser.follow(await choose(browser, refused, 'de')), 'de', 'login.title')
    const passkey = await browser.submit(login, { credential: '{}' }, '/oauth/login')
    says(await browser.follow(await choose(browser, passkey, 'pt', '/oauth/passkey')), 'pt', 'login.title')
  })

  test('to the way in that was chosen', async () => {
    const user = await addUser(app, 'factors')
    const home = openBrowser(app)
    const { key } = await enrolTotp(app, home, await openEnrolment(home, user.username))
    const browser = openBrowser(app)
    const code = await browser.follow(
      await signIn(browser, await browser.get(authorizeUrl('web')), user.username),
    )
    const recovery = await browser.get(linkWith(code, 'method=recovery'))
    const shown = await browser.follow(await choose(browser, recovery, 'es'))
    expect(shown.html).toContain(unescapeHtml(translator('es')('second-factor.lead.recovery')))
    app.clock.advance(MINUTE)
    const done = await browser.submit(
      await browser.get(linkWith(shown, 'method=totp')),
      { code: codeOf(app, key) },
      '/oauth/second-factor',
    )
    expect(done.location).toStartWith('https://app.example/callback?code=')
  })

  test('to the kind of factor that is added, and to the form of a registration that a client asked for', async () => {
    await addUser(app, 'adding')
    const browser = openBrowser(app)
    const kinds = await openEnrolment(browser, 'adding')
    const totp = await browser.get(linkWith(kinds, 'kind=totp'))
    says(await browser.follow(await choose(browser, totp, 'fr')), 'fr', 'enrol-totp.title')

    await app.admin('PUT', '/organizations/default', { settings: { registration: 'open' } })
    const other = openBrowser(app)
    const email = 'new@example.com'
    const signUp = linkWith(await other.get(authorizeUrl('web')), '/oauth/sign-up')
    await other.submit(await other.get(signUp), { email })
    mail.clear()
    await deliverMails(app.context)
    const link = (/http:\S+/.exec(mail.mails[0]?.text ?? '')?.[0] ?? '').replace(BASE, '')
    const form = await other.get(link)
    const shown = await other.follow(await choose(other, form, 'de'))
    expect([shown.status, shown.url, shown.html.includes(email)]).toEqual([200, link, true])
    expect(shown.headers.get('content-language')).toBe('de')
  })

  test('to a page of the account, with what it was asked for', async () => {
    const user = await addUser(app, 'tabs')
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account'), user.username)
    for (const path of [
      '/account',
      '/account?organization=default',
      '/account/security',
      '/account/profile',
    ]) {
      const page = await browser.get(path)
      expect((await choose(browser, page, 'fr')).location).toBe(path)
    }
    const asking = '/oauth/logout?client_id=web&state=a%20b'
    expect((await choose(browser, await browser.get(asking), 'en')).location).toBe(asking)
  })

  test('to the page of an error', async () => {
    const browser = openBrowser(app)
    const address = authorizeUrl('nobody')
    const page = await browser.follow(await choose(browser, await browser.get(address), 'de'))
    expect([page.status, page.heading]).toEqual([400, translator('de')('error.unknown_client.title')])
    const missing = await browser.get('/nowhere')
    expect((await choose(browser, missing, 'fr')).location).toBe('/account')
  })

  test('to the page of a link, which is not used up', async () => {
    const user = await addUser(app, 'linked')
    const url = new URL(await signInLink(app, user))
    const address = url.pathname + url.search
    const browser = openBrowser(app)
    const opened = await browser.get(address)
    await app.events()
    const back = await choose(browser, opened, 'de', '/elsewhere')
    expect([back.status, back.location, back.headers.get('referrer-policy')]).toEqual([
      303,
      address,
      'no-referrer',
    ])
    const page = await browser.follow(back)
    says(page, 'de', 'change-password.either')
    const refused = await browser.submit(page, { password: 'short', password_repeat: 'short' })
    const again = await browser.follow(await choose(browser, refused, 'fr', '/account/sign-in'))
    says(again, 'fr', 'change-password.either')
    expect(await app.events()).toEqual([])
    const done = await browser.submit(again, { password: NEW, password_repeat: NEW })
    expect(done.location).toBe('/account')
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.password_changed', 'user.login'])
    expect((await browser.get(address)).status).toBe(410)
  })
})

describe('PAG-31 a choice that is no choice', () => {
  const post = async (fields: Record<string, string> | string, headers: Record<string, string> = {}) => {
    const browser = openBrowser(app)
    await app.events()
    const { status, location } = await browser.post('/language', fields, headers)
    expect(await app.events()).toEqual([])
    return [status, location, browser.received]
  }

  test.each(['xx', '', 'DE', 'de-AT', 'de; Domain=evil.example', 'de\r\nx: y'])(
    '%j changes nothing',
    async language => {
      expect(await post({ language })).toEqual([303, '/account', []])
    },
  )

  test.each([
    'https://evil.example/account',
    '//evil.example/account',
    '/\\evil.example/account',
    '\\\\evil.example/account',
    'https:evil.example/account',
    `${BASE}@evil.example/account`,
    'http://localhost/account',
    'javascript:alert(1)',
    '/account/../nowhere',
    '/account/continue?request=x',
    '/oauth/authorize/replay?handle=x',
    '/account\r\nset-cookie: x=y',
    'x'.repeat(10_000),
  ])('%j leads to the account', async page => {
    const set = [`${COOKIE}=de; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000`]
    expect(await post({ language: 'de', page })).toEqual([303, '/account', set])
    if (!page.includes('\r'))
      expect(await post({ language: 'de' }, { referer: page })).toEqual([303, '/account', set])
  })

  test('from another origin, of the wrong form or size is refused', async () => {
    for (const origin of ['https://evil.example', 'null'])
      expect(await post({ language: 'de' }, { origin })).toEqual([403, undefined, []])
    expect(await post('language=de&language=fr')).toEqual([400, undefined, []])
    expect(await post('language=%ff')).toEqual([400, undefined, []])
    expect(await post('language=de&page=/account%00')).toEqual([400, undefined, []])
    expect(await post({ language: 'de' }, { 'content-type': 'text/plain' })).toEqual([415, undefined, []])
    expect(await post(`language=de&page=${'x'.repeat(70_000)}`)).toEqual([413, undefined, []])
    const read = await app.call('/language?language=de')
    expect([read.status, read.headers.get('allow'), read.headers.getSetCookie()]).toEqual([405, 'POST', []])
  })
})
