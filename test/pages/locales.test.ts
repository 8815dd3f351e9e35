import { describe, expect, test } from 'bun:test'
import { chooseLocale, direction, locales } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { MessageKey } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { type Translate, translator } from '#src/pages/translate.ts'
import { viewTools } from '#src/pages/view.ts'
import { ADMIN_SECRET, startApp } from '#test/support/app.ts'
import { openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { linkWith } from '#test/support/factors.ts'
import { samples } from '#test/support/page-samples.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'

type Texts = Record<string, string>
const files = embed('templates/locales', ['.json'])
const textsOf = (locale: string): Texts => JSON.parse(files[`${locale}.json`] ?? '{}')
const english = textsOf('en')
const translations = locales.filter(locale => locale !== 'en')

/** Returns the names of the parameters in a text, including the counts that select plural forms. */
const holesOf = (text: string): string[] =>
  [...new Set([...text.matchAll(/\{(\w+)(?:, plural,|\})/g)].map(([, name = '']) => name))].sort()

/** Keys whose text can be the same in English and in a translation. */
const alike = ['page.title', 'page.error', 'error.lead', 'recovery-codes.account']

test('the pages have nine languages, and discovery lists them', async () => {
  expect([...locales].sort()).toEqual(['ar', 'de', 'en', 'es', 'fr', 'it', 'ja', 'pl', 'pt'])
  const { call } = await startApp()
  const discovery = (await (await call('/.well-known/openid-configuration')).json()) as {
    ui_locales_supported: string[]
  }
  expect(discovery.ui_locales_supported).toEqual([...locales])
})

describe.each([...locales])('the texts in %s', locale => {
  const own = textsOf(locale)
  const entries = Object.entries(own)

  test('have the keys of English, in its order and groups', () => {
    const shape = (text = '') => text.split('\n').map(line => line.match(/^ {2}"[^"]+"/)?.[0] ?? line)
    expect(shape(files[`${locale}.json`])).toEqual(shape(files['en.json']))
  })

  test('have the placeholders of English', () => {
    const holes = (texts: Texts) => Object.entries(texts).map(([key, text]) => [key, holesOf(text)])
    expect(holes(own)).toEqual(holes(english))
  })

  test('are present, with typographic quotes and dashes', () => {
    expect(entries.filter(([, text]) => text.trim() !== text || text === '')).toEqual([])
    expect(entries.filter(([, text]) => /['"`]|\.\.\.| - /.test(text))).toEqual([])
    // French puts a narrow no-break space before these characters.
    if (locale === 'fr')
      expect(entries.filter(([, text]) => /(?<![\u202f\u00a0])[:;?!»]|«(?!\u202f)/.test(text))).toEqual([])
    // In Polish, no line ends in a word of one letter.
    if (locale === 'pl')
      expect(entries.filter(([, text]) => /(?<![\p{L}\p{N}])[aiouwz] /iu.test(text))).toEqual([])
    // Arabic has its own comma, semicolon and question mark.
    if (locale === 'ar')
      expect(entries.filter(([, text]) => /[,;?]/.test(text.replace('{count, plural,', '')))).toEqual([])
  })

  test('go on after the greeting of a mail as the language does', () => {
    // German and Italian greetings end in a comma, after which the sentence goes on.
    const start = { de: /^(?:\p{Ll}|Sie )/u, it: /^\p{Ll}/u }[locale] ?? /^[^\p{Ll}]/u
    const texts = entries.filter(([key]) => /^mail\.\w+\.text$/.test(key))
    expect(texts.filter(([, text]) => !start.test(text))).toEqual([])
  })

  test('have the article that a date needs in Italian and Spanish', () => {
    const bare = { es: /\bhasta \{time\}/, it: /\bfino a \{time\}/ }[locale]
    expect(entries.filter(([, text]) => bare?.test(text))).toEqual([])
  })

  test('tell nothing by a colour', () => {
    const red = /(?<!\p{L})(?:red|rote?n?|rouge|rojo|rosso|vermelho)(?!\p{L})|czerwon|赤|أحمر/iu
    expect(entries.filter(([, text]) => red.test(text))).toEqual([])
  })

  test('are translated', () => {
    const same = entries.filter(
      ([key, text]) =>
        locale !== 'en' && text === english[key] && text.split(' ').length > 1 && !alike.includes(key),
    )
    expect(same).toEqual([])
  })

  test('have a form for every count', () => {
    const plurals = entries.filter(([, text]) => text.includes(', plural,'))
    expect(plurals.map(([key]) => key)).toEqual([
      'second-factor.remember',
      'account-security.codes_left',
      'account-security.notice.recovery_code_used',
      'mail.recovery_code_used.text',
    ])
    for (const [key, text] of plurals) {
      const forms = [...text.matchAll(/([=\w]+) \{[^{}]*\}/g)].map(([, name = '']) => name)
      const rules = new Intl.PluralRules(locale)
      for (const count of [...Array(12).keys(), 100]) {
        expect(forms.some(name => name === `=${count}` || name === rules.select(count))).toBe(true)
        const others = Object.fromEntries(holesOf(text).map(name => [name, 'x']))
        // Mails pass the count as a string, not as a number.
        const said = translator(locale)(key as MessageKey, { ...others, count: String(count) })
        expect(said).not.toMatch(/#|plural|\{count/)
        // Arabic has a form for two, which omits the number.
        if (count > 1 && rules.select(count) !== 'two') expect(said).toContain(String(count))
      }
    }
  })
})

test('counts and times follow the conventions of the language', () => {
  const now = Date.UTC(2026, 10, 20, 12)
  const saidIn = (locale: string) => {
    const t = translator(locale)
    const { wait, ago, device } = viewTools(locale, t)
    const left = (count: number) => t('account-security.codes_left', { count }).split(/(?<=[.。])/)[0]
    return [
      ...[1, 16, 600].map(seconds => wait(seconds).replace('\u00a0', '_')),
      t('account.session_active', { ago: ago('2026-11-20T09:00:00Z', now) }),
      ...[left(0), left(1), left(8)],
      device('Mozilla/5.0 (Windows NT 10.0) Firefox/150.0'),
    ]
  }
  expect(Object.fromEntries(locales.map(locale => [locale, saidIn(locale)]))).toEqual({
    ar: [
      ...['ثانية', '16_ثانية', '10_دقائق', 'آخر نشاط: \u2068قبل 3 ساعات\u2069'],
      ...['لم يبقَ لديك أي رمز.', 'بقي لديك رمز واحد.', 'بقيت لديك 8 رموز.'],
      '\u2068Firefox\u2069 على \u2068Windows\u2069',
    ],
    de: [
      ...['1_Sekunde', '16_Sekunden', '10_Minuten', 'Zuletzt aktiv: vor 3 Stunden'],
      ...['Sie haben keinen Code mehr.', 'Sie haben noch 1 Code.', 'Sie haben noch 8 Codes.'],
      'Firefox auf Windows',
    ],
    en: [
      ...['1_second', '16_seconds', '10_minutes', 'Active 3 hours ago'],
      ...['None of your codes is left.', 'One of your codes is left.', '8 of your codes are left.'],
      'Firefox on Windows',
    ],
    es: [
      ...['1_segundo', '16_segundos', '10_minutos', 'Última actividad: hace 3 horas'],
      ...['No te queda ningún código.', 'Te queda 1 código.', 'Te quedan 8 códigos.'],
      'Firefox en Windows',
    ],
    fr: [
      ...['1_seconde', '16_secondes', '10_minutes', 'Dernière activité\u202f: il y a 3 heures'],
      ...['Il ne vous reste aucun code.', 'Il vous reste 1 code.', 'Il vous reste 8 codes.'],
      'Firefox sur Windows',
    ],
    it: [
      ...['1_secondo', '16_secondi', '10_minuti', 'Ultima attività: 3 ore fa'],
      ...['Non hai più codici.', 'Hai ancora 1 codice.', 'Hai ancora 8 codici.'],
      'Firefox su Windows',
    ],
    ja: [
      ...['1_秒', '16_秒', '10_分', '最終アクティビティ：3 時間前'],
      ...['コードは残っていません。', '残りのコードは 1\u00a0個です。', '残りのコードは 8\u00a0個です。'],
      'Windows の Firefox',
    ],
    pl: [
      ...['1_sekunda', '16_sekund', '10_minut', 'Ostatnia aktywność: 3 godziny temu'],
      ...['Nie masz już żadnego kodu.', 'Masz jeszcze 1 kod.', 'Masz jeszcze 8 kodów.'],
      'Firefox (Windows)',
    ],
    pt: [
      ...['1_segundo', '16_segundos', '10_minutos', 'Última atividade: há 3 horas'],
      ...['Não resta nenhum código.', 'Resta 1 código.', 'Restam 8 códigos.'],
      'Firefox no Windows',
    ],
  })
})

describe.each(translations)('the pages in %s', locale => {
  // English texts of more than two words that must not appear on a translated page.
  const telling = Object.entries(english).filter(
    ([key, text]) => text.split(' ').length > 2 && !text.includes('{') && textsOf(locale)[key] !== text,
  )

  test.each(samples.map(sample => [`${sample.page}.${sample.state}`, sample] as const))(
    '%s has no English text',
    async (_, { page, data, status = 200 }) => {
      const response = render(page, data, { locale, status })
      expect(response.headers.get('content-language')).toBe(locale)
      const html = unescapeHtml(await response.text())
      expect(html).toContain(`<html lang="${locale}" dir="${direction(locale)}">`)
      expect(telling.filter(([, text]) => html.includes(text))).toEqual([])
      const shown = html.replace(/<[^>]*>/g, ' ')
      expect(shown).not.toMatch(/\{\w+[},]|undefined|\b(ago|yesterday|seconds?|on Windows)\b/)
    },
  )
})

describe('the language of a request', () => {
  test.each([
    [['pt-BR'], null, 'pt'],
    [['pt-PT', 'en'], null, 'pt'],
    [['zh-Hant', 'fr-CA'], null, 'fr'],
    [[], 'es-419,es;q=0.9,en;q=0.8', 'es'],
    [[], 'ja-JP', 'ja'],
    [['DE-at'], 'ja', 'de'],
    [[], 'nl, sv', 'en'],
  ] as [string[], string | null, string][])('O-52 %j, then %s: %s', (ui_locales, header, expected) =>
    expect(chooseLocale(ui_locales, header)).toBe(expected),
  )

  test('a right-to-left language sets its direction on every page', async () => {
    const [login] = samples
    const html = await render('login', login?.data as never, { locale: 'ar' }).text()
    expect(html).toStartWith('<!doctype html>\n<html lang="ar" dir="rtl">')
    expect(direction('ar')).toBe('rtl')
  })
})

const mail = captureMail()
const app = await startApp({}, { mail })
/** Delivers the queued mails, and returns the subject and the first line of each mail. */
const post = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails.map(({ subject, text }) => [subject, text.split('\n')[0]])
}
const saysMail = (t: Translate, kind: 'reset_password' | 'new_device' | 'password_changed') => {
  const brand = 'Gatehouse'
  return [[t(`mail.${kind}.subject`, { brand }).replaceAll('\u00a0', ' '), t(`mail.${kind}.title`)]]
}
const says = (page: Page, locale: string, heading: MessageKey, ...more: MessageKey[]) => {
  const t = translator(locale)
  expect([page.headers.get('content-language'), page.heading]).toEqual([locale, t(heading)])
  expect(page.html).toContain(`<html lang="${locale}" dir="${direction(locale)}">`)
  for (const key of more) expect(unescapeHtml(page.html)).toContain(t(key))
}
const NEW = 'Another-horse-8'
/** The date of the test's clock in each language. */
const today: Record<string, string> = {
  ar: '15 يناير 2026',
  de: '15. Januar 2026',
  en: 'January 15, 2026',
  es: '15 de enero de 2026',
  fr: '15 janvier 2026',
  it: '15 gennaio 2026',
  ja: '2026年1月15日',
  pl: '15 stycznia 2026',
  pt: '15 de janeiro de 2026',
}

describe.each([...locales])('a login in %s', locale => {
  const t = translator(locale)
  const other = locale === 'ja' ? 'de' : 'ja'
  const machine = { ip: `198.51.100.${locales.indexOf(locale) + 1}`, headers: { 'accept-language': other } }

  test('PAG-04 requested by the application: pages, refusals, errors and mail, until it is done', async () => {
    const client = `web-${locale}`
    await addClient(app, client)
    const user = await addUser(app, `user-${locale}`)
    const first = openBrowser(app, machine)
    await signIn(first, await first.get('/account'), user.username)
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: NEW, temporary: true })
    await post()

    const browser = openBrowser(app, machine)
    const asking = { ui_locales: `xx ${locale}-XX` }
    const login = await browser.get(authorizeUrl(client, asking))
    says(login, locale, 'login.title', 'login.username', 'login.submit')
    says(
      await signIn(browser, login, user.username, 'wrong'),
      locale,
      'login.title',
      'login.error.invalid_credentials',
    )
    const forgotten = await browser.get(linkWith(login, '/oauth/reset-password'))
    says(forgotten, locale, 'reset-password.title')
    says(
      await browser.submit(forgotten, { username: user.username }),
      locale,
      'reset-password.sent_title',
      'reset-password.sent',
    )
    expect(await post()).toEqual(saysMail(t, 'reset_password'))

    const change = await signIn(browser, login, user.username, NEW)
    says(change, locale, 'change-password.title', 'change-password.reason.temporary')
    expect(await post()).toEqual(saysMail(t, 'new_device'))
    says(
      await browser.submit(change, { password: 'Third-horse-9', password_repeat: 'Other-horse-9' }),
      locale,
      'change-password.title',
      'change-password.error.mismatch',
    )
    await browser.submit(change, { password: 'Third-horse-9', password_repeat: 'Third-horse-9' })
    expect(await post()).toEqual(saysMail(t, 'password_changed'))
    expect(mail.mails[0]?.text).toMatch(new RegExp(`${today[locale]}.{1,10}12:00.{1,4}UTC`))

    says(await browser.get(`/oauth/logout?ui_locales=${locale}`), locale, 'logout-confirm.title')
    says(await browser.get('/account'), other, 'account.title')
    says(await browser.get(authorizeUrl('nobody', asking)), locale, 'error.unknown_client.title')

    const late = openBrowser(app, machine)
    const open = await late.get(authorizeUrl(client, asking))
    await app.admin('PUT', `/clients/${client}`, { redirect_uris: ['https://moved.example/callback'] })
    says(await signIn(late, open, user.username, NEW), locale, 'error.bad_redirect.title', 'error.details')
  })

  test('requested by the browser: its pages, an unknown page, and mail', async () => {
    const user = await addUser(app, `own-${locale}`)
    const headers = { 'accept-language': `xx, ${locale};q=0.9, ${other};q=0.1` }
    const browser = openBrowser(app, { ...machine, headers })
    says(await browser.get('/nowhere'), locale, 'error.not_found.title', 'error.not_found.next')
    await signIn(browser, await browser.get('/account'), user.username)
    says(await browser.get('/account'), locale, 'account.title', 'account.sessions')
    const stale = await browser.post('/oauth/login', { csrf_token: 'x' })
    says(stale, locale, 'error.forbidden.title')

    const token = await app.tokenOf(app.context.config.admin_client_id, ADMIN_SECRET)
    await post()
    const asked = await app.call(`/api/v1/admin/users/${user.id}/send-password-reset`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'accept-language': locale },
    })
    expect(asked.status).toBe(204)
    expect(await post()).toEqual(saysMail(t, 'reset_password'))
  })
})

test('mail caused by an administrator without a language is in English', async () => {
  const user = await addUser(app, 'nobody-asked')
  await post()
  await app.admin('POST', `/users/${user.id}/send-password-reset`)
  expect(await post()).toEqual(saysMail(translator('en'), 'reset_password'))
})

test.each([
  ['ja', 'Example Taro'],
  ['fr', 'Taro Example'],
])('in %s a person is %s, on pages and in mail', async (locale, name) => {
  const user = await addUser(app, `taro-${locale}`, { first_name: 'Taro' })
  const browser = openBrowser(app, { ip: '198.51.100.9', headers: { 'accept-language': locale } })
  const page = await signIn(browser, await browser.get('/account'), user.username)
  expect(page.html).toContain(`<h2 id="identity"><bdi>${name}</bdi></h2>`)
  await post()
  const token = await app.tokenOf(app.context.config.admin_client_id, ADMIN_SECRET)
  await app.call(`/api/v1/admin/users/${user.id}/send-password-reset`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'accept-language': locale },
  })
  await post()
  expect(mail.mails[0]?.text).toContain(translator(locale)('mail.greeting', { name }))
})
