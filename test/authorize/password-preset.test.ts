/** Tests the password policy of NIST SP 800-63B, and the names of new factors. */
import { expect, test } from 'bun:test'
import { kindOf } from '#src/directory/identity-providers/buttons.ts'
import { applySeed } from '#src/seed/apply.ts'
import { parseSeed } from '#src/seed/read.ts'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { openBrowser } from '#test/support/browser.ts'
import { enrolPasskey, enrolTotp, openEnrolment } from '#test/support/factors.ts'
import { addUser, PASSWORD, signIn } from '#test/support/people.ts'

const LONG = 'plain words in a row'
const SHORT = 'plainrow'

const ruleCodes = (answer: { body: { details?: { code: string }[] } }) =>
  answer.body.details?.map(({ code }) => code)

test('PWD-20 requires only the length and no common password, by API, seed and page', async () => {
  const app = await startApp()
  const user = await addUser(app, 'ada')
  const text = 'organizations:\n  - slug: default\n    settings: { password_policy: { preset: nist } }\n'
  await applySeed(app.context, parseSeed(text, 'seed.yaml', {}))
  const { body } = await app.admin('GET', '/organizations/default')
  expect(body.settings.password_policy).toEqual({ preset: 'nist' })

  const reset = (password: string) => app.admin('POST', `/users/${user.id}/reset-password`, { password })
  expect(ruleCodes(await reset('Fourteen-chr-1'))).toEqual(['min_length'])
  expect((await reset(LONG)).status).toBe(204)

  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get('/account/change-password'), 'ada', LONG)
  expect(page.html.match(/data-rule="\w+"/g)).toEqual(['data-rule="min_length"', 'data-rule="not_common"'])
  const change = (password: string) =>
    browser.submit(page, { current_password: LONG, password, password_repeat: password })
  const refused = await change('passwordpassword')
  expect([refused.status, refused.html.match(/data-rule="(\w+)"[^>]*class="failed"/)?.[1]]).toEqual([
    400,
    'not_common',
  ])
  expect((await change('other words in a row')).status).toBe(303)
})

test('PWD-20 eight characters suffice with a second factor; configured rules take precedence', async () => {
  const app = await startApp()
  const policy = async (password_policy: object, more: object = {}) =>
    expect(
      (await app.admin('PUT', '/organizations/default', { settings: { password_policy, ...more } })).status,
    ).toBe(200)
  const user = await addUser(app, 'ada')
  await policy({ preset: 'nist' })
  const reset = (password: string) => app.admin('POST', `/users/${user.id}/reset-password`, { password })
  expect(ruleCodes(await reset(SHORT))).toEqual(['min_length'])
  const browser = openBrowser(app)
  await enrolTotp(app, browser, await openEnrolment(browser, 'ada'))
  expect((await reset(SHORT)).status).toBe(204)
  expect(ruleCodes(await reset('plainro'))).toEqual(['min_length'])

  await policy({ min_length: 20, require_digit: true })
  expect(ruleCodes(await reset(SHORT))).toEqual(['min_length', 'require_digit'])
  await policy({ min_length: null, require_digit: null }, { mfa_required: true })
  expect((await addUser(app, 'bob', { password: SHORT })).id).toStartWith('usr_')

  const unknown = { settings: { password_policy: { preset: 'owasp' } } }
  const answer = await app.admin('PUT', '/organizations/default', unknown)
  expect([answer.status, answer.body.details[0].message]).toEqual([
    422,
    'nist, or null for the default rules.',
  ])
})

test('PAG-21 a password that the page can show is typed once', async () => {
  const app = await startApp()
  await addUser(app, 'ada')
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get('/account/change-password'), 'ada')
  const { csrf_token = '' } =
    page.forms.find(({ action }) => action === '/account/change-password')?.fields ?? {}
  const done = await browser.post('/account/change-password', {
    csrf_token,
    current_password: PASSWORD,
    password: 'Another-horse-8',
  })
  expect([done.status, done.location]).toEqual([303, '/account?notice=password_changed'])
})

test('PAG-25 a factor is named after its maker or kind, with a number if that name is taken', async () => {
  const app = await startApp()
  const user = await addUser(app, 'ada')
  const browser = openBrowser(app, { headers: { 'accept-language': 'de' } })
  const yubikey = () => newPasskey(undefined, '2fc0579f-8113-47ea-b116-bb5a8db9202a')
  for (const passkey of [yubikey(), yubikey(), newPasskey(), newPasskey(undefined, crypto.randomUUID())]) {
    const choice = await browser.follow(await openEnrolment(browser, 'ada'))
    const { page } = await enrolPasskey(browser, choice, passkey)
    if (page.heading !== 'Sicherheit') await browser.follow(await browser.submit(page, {}, '/oauth/enrol'))
    app.clock.advance(1)
  }
  const { body } = await app.admin('GET', `/users/${user.id}/factors?order=asc`)
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual([
    'YubiKey 5 NFC',
    'YubiKey 5 NFC 2',
    'Passkey',
    'Passkey 2',
  ])
})

test('PAG-26 a button has the logo of its preset, of a well-known host, or of its type', () => {
  const mark = (settings: object, type = 'oidc') => kindOf({ type, settings } as Parameters<typeof kindOf>[0])
  expect(mark({ preset: 'github', authorization_endpoint: 'https://git.example/x' }, 'oauth2')).toBe('github')
  expect(mark({ authorization_endpoint: 'https://www.linkedin.com/oauth/v2/authorization' }, 'oauth2')).toBe(
    'linkedin',
  )
  expect(mark({ issuer: 'https://slack.com' })).toBe('slack')
  expect(mark({ issuer: 'https://slack.com.evil.example' })).toBe('oidc')
  expect(mark({}, 'saml')).toBe('saml')
})
