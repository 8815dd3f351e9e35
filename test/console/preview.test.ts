/** Tests the preview of looks that are not saved. */
import { beforeEach, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, authorizeUrl } from '#test/support/people.ts'

let app: TestApp
let acme: Json
let token: string
beforeEach(async () => {
  app = await startApp()
  acme = await addOrganization(app, 'acme', { display_name: 'Acme', settings: { accent_color: '#0a7d4b' } })
  token = await callerOf(app, acme.id, ['organizations:update'])
  await app.events()
})

const seal = (body: Json, id = acme.id) => app.admin('POST', `/organizations/${id}/preview`, body, token)
const framed = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' }
const show = (looks: string, headers: Record<string, string> = framed) =>
  app.call('/console/preview', { method: 'POST', headers, body: new URLSearchParams({ looks }) })
const svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0"/></svg>'
const logo = `data:image/svg+xml;base64,${btoa(svg)}`

test('CON-44 a preview shows the login page in looks that are not saved, and nothing is stored', async () => {
  const custom_css = '.card { outline: 3px dashed </style><script>alert(1)</script> }'
  const { status, body } = await seal({
    display_name: '<img src=x>',
    settings: {
      theme: 'ember',
      accent_color: '#aa0055',
      logo,
      custom_css,
      support_url: 'https://help.example',
    },
  })
  expect(status).toBe(200)
  const answer = await show(body.looks)
  expect(answer.status).toBe(200)
  const html = await answer.text()
  expect(html).toContain('&lt;img src=x&gt;')
  expect(html).toContain(logo)
  expect(html).toContain('/assets/themes/ember.')
  expect(html).toContain('https://help.example')
  expect(html).toContain(`href="data:text/css;base64,${btoa(custom_css)}"`)
  expect(html).not.toMatch(/<script|alert\(1\)/)
  const { body: stored } = await app.admin('GET', `/organizations/${acme.id}`)
  expect(stored).toEqual(acme)
  expect(await app.events()).toEqual([])
})

test('CON-44 it is a page without script and forms, for a frame of this origin alone', async () => {
  const { looks } = (await seal({})).body
  const answer = await show(looks)
  expect(answer.headers.get('content-security-policy')).toBe(
    "default-src 'none'; style-src 'self' data:; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin",
  )
  expect([answer.headers.get('x-frame-options'), answer.headers.get('cache-control')]).toEqual([
    'SAMEORIGIN',
    'no-store',
  ])
  expect(await answer.text()).toContain('/assets/accent')
  for (const headers of [
    {},
    { ...framed, 'sec-fetch-dest': 'document' },
    { ...framed, 'sec-fetch-site': 'cross-site' },
    { ...framed, 'sec-fetch-site': 'same-site' },
  ])
    expect((await show(looks, headers)).status).toBe(403)
})

test('CON-44 a preview ends after a minute, and only an unchanged text of this server is accepted', async () => {
  const { looks } = (await seal({})).body
  const broken = `${looks.slice(0, -2)}${looks.endsWith('AA') ? 'BB' : 'AA'}`
  const body = new URLSearchParams({ another: 'field', looks })
  const posted = await app.call('/console/preview', { method: 'POST', headers: framed, body })
  expect(posted.status).toBe(400)
  for (const text of [broken, '', 'x', Buffer.from('{"brand":{}}').toString('base64url')])
    expect((await show(text)).status).toBe(400)
  app.clock.advance(MINUTE - 1)
  expect((await show(looks)).status).toBe(200)
  app.clock.advance(1)
  expect((await show(looks)).status).toBe(400)
})

test('CON-44 a preview has the same ways in as the login page of the organization', async () => {
  const texts = ['Forgot password?', 'An administrator can give you a link', 'Sign in with a passkey']
  texts.push('Email me a code', 'Create an account', 'Google')
  const partsOf = (html: string) => texts.filter(text => html.includes(text))
  for (const mail of [undefined, captureMail()]) {
    app = await startApp({}, mail && { mail })
    const settings = mail && { email_code: 'all', registration: 'open' }
    acme = await addOrganization(app, 'acme', { ...(settings && { settings }) })
    token = await callerOf(app, acme.id, ['organizations:update'])
    await create(app, '/identity-providers', {
      ...{ organization_id: acme.id, name: 'Google', alias: 'google', type: 'oidc', preset: 'google' },
      ...{ client_id: 'x', client_secret: 'y' },
    })
    await addClient(app, 'web', { organization_id: acme.id })
    const page = await openBrowser(app).get(authorizeUrl('web'))
    const preview = await (await show((await seal({})).body.looks)).text()
    expect(partsOf(preview)).toEqual(partsOf(page.html))
    expect(partsOf(preview)).toHaveLength(mail ? 5 : 3)
    expect(preview).toMatch(/<button[^>]*type="submit">(?:(?!<button).)*Sign in with a passkey/s)
  }
})

test('CON-44 looks are validated as when they are saved, and picture URLs must be of the organization', async () => {
  const bad = { theme: '../x', accent_color: 'blue', logo: 'https://evil.example/x.png', custom_css: ' ' }
  expect(refused(await seal({ settings: bad }))).toEqual([
    'settings.accent_color',
    'settings.custom_css',
    'settings.logo',
    'settings.theme',
  ])
  expect(refused(await seal({ settings: { mfa_required: true } }))).toEqual(['settings.mfa_required'])
  await app.admin('PUT', '/organizations/default', { settings: { logo } })
  const foreign = (await app.admin('GET', '/organizations/default')).body.settings.logo
  expect(refused(await seal({ settings: { logo: foreign } }))).toEqual(['settings.logo'])
  await app.admin('PUT', `/organizations/${acme.id}`, { settings: { logo } })
  const own = (await app.admin('GET', `/organizations/${acme.id}`)).body.settings.logo
  const { looks } = (await seal({ settings: { logo: own } })).body
  expect(await (await show(looks)).text()).toContain(own)
  const without = (await seal({ settings: { logo: null } })).body
  expect(await (await show(without.looks)).text()).not.toContain(own)
})

test('CON-02 GATEHOUSE_CONSOLE=off removes the preview', async () => {
  const off = await startApp({ console: 'off' })
  const { status } = await off.call('/console/preview', { method: 'POST', headers: framed, body: 'looks=x' })
  expect(status).toBe(404)
})
