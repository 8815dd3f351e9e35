import { describe, expect, test } from 'bun:test'
import { parse } from 'yaml'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { accentUrl } from '#src/pages/accent.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import { rightsFields } from '#src/seed/schema.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { refused } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD } from '#test/support/people.ts'

const uri = (type: string, bytes: Uint8Array | string) =>
  `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}`
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
const svg = uri('svg+xml', SVG)
const pngOf = (width: string) =>
  uri('png', Buffer.from(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${width}\0\0\0\x09`, 'latin1'))
const png = pngOf('\0\0\0\x10')
const CSS = '.brand { letter-spacing: 0 }\n'
const looks = { logo: svg, logo_dark: png, accent_color: '#0A7D6C', custom_css: CSS }

const app = await startApp()
const acme = await addOrganization(app, 'acme', { settings: looks })
const other = await addOrganization(app, 'other', { settings: { accent_color: '#aa2200' } })
for (const { id, slug } of [acme, other]) await addClient(app, `${slug}-shop`, { organization_id: id })

const put = (settings: Json, slug = 'acme') => app.admin('PUT', `/organizations/${slug}`, { settings })
const assets = () => app.context.store.read(q => q.select().from(q.tables.organization_assets))
const sheetsOf = (html: string) =>
  [...html.matchAll(/<link rel="stylesheet" href="([^"]+)">/g)].map(([, url]) => url)

describe('logo, colour and CSS', () => {
  test('are returned as URLs, and can be sent back unchanged', async () => {
    const address = `/assets/organizations/${acme.id}/`
    expect(acme.settings).toEqual({
      logo: expect.stringMatching(new RegExp(`^${address}[0-9a-f]{32}\\.svg$`)),
      logo_dark: expect.stringMatching(new RegExp(`^${address}[0-9a-f]{32}\\.png$`)),
      accent_color: '#0a7d6c',
      custom_css: expect.stringMatching(new RegExp(`^${address}[0-9a-f]{32}\\.css$`)),
    })
    await app.events()
    for (const settings of [acme.settings, looks]) expect((await put(settings)).body).toEqual(acme)
    expect(await app.events()).toEqual([])
  })

  test('are served by the server itself, cacheable for ever, and can neither run script nor load anything', async () => {
    const types = { logo: 'image/svg+xml', logo_dark: 'image/png', custom_css: 'text/css; charset=utf-8' }
    for (const [name, type] of Object.entries(types)) {
      const answer = await app.call(acme.settings[name])
      expect(answer.status).toBe(200)
      answer.headers.delete('x-request-id')
      expect(Object.fromEntries(answer.headers)).toEqual({
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      })
    }
    expect(await (await app.call(acme.settings.logo)).text()).toBe(SVG)
    expect(await (await app.call(acme.settings.custom_css)).text()).toBe(CSS)
    expect((await app.call(accentUrl('#0a7d6c'))).status).toBe(200)
  })

  test('PAG-03 apply to the pages of the organization in order of precedence, and to no other’s', async () => {
    const own = await openBrowser(app).get(authorizeUrl('acme-shop'))
    expect(sheetsOf(own.html).slice(2)).toEqual([accentUrl('#0a7d6c'), acme.settings.custom_css])
    expect(own.html).toContain(`<img class="logo" src="${acme.settings.logo}" alt="">`)
    expect(own.html).toMatch(
      `<source srcset="${acme.settings.logo_dark}" media="(prefers-color-scheme: dark)">`,
    )
    const foreign = await openBrowser(app).get(authorizeUrl('other-shop'))
    expect(sheetsOf(foreign.html).slice(2)).toEqual([accentUrl('#aa2200')])
    for (const path of [authorizeUrl('nobody'), '/account/signed-out']) {
      const page = await openBrowser(app).get(path)
      expect(sheetsOf(page.html)).toHaveLength(2)
      expect(page.html).not.toContain(acme.id)
    }
    expect(foreign.html).not.toContain(acme.id)
    expect(foreign.html).not.toContain('class="logo"')
  })

  test('apply to the account pages', async () => {
    await addUser(app, 'ada', { organization_id: acme.id })
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('acme-shop'))
    await browser.submit(login, { username: 'ada', password: PASSWORD })
    const { html } = await browser.get('/account')
    expect(sheetsOf(html).slice(2)).toEqual([accentUrl('#0a7d6c'), acme.settings.custom_css])
    expect(html).toContain(acme.settings.logo)
  })

  test('a URL does not work under another organization or name', async () => {
    const { logo, custom_css } = acme.settings
    for (const path of [
      logo.replace(acme.id, other.id),
      logo.replace('.svg', '.png'),
      logo.replace('.svg', '.css'),
      custom_css.replace('.css', '.svg'),
      logo.replace('/assets/', '/assets//'),
      `${logo}/`,
      `/assets/organizations/${acme.id}/${'0'.repeat(32)}.svg`,
      `/assets/organizations/${acme.id}/`,
      '/assets/organizations/',
    ])
      expect([path, (await app.call(path)).status]).toEqual([path, 404])
  })
})

describe('a change', () => {
  test('records one event with URLs; removed fields are gone', async () => {
    await app.events()
    const before = await assets()
    const { body } = await put({ logo: png, logo_dark: null, accent_color: '#112233' })
    const { logo, custom_css } = body.settings
    expect(body.settings).toEqual({ logo, accent_color: '#112233', custom_css })
    expect(await app.events()).toEqual([
      {
        type: 'organization.updated',
        actor_id: 'gatehouse-admin',
        target_id: acme.id,
        target_type: 'organization',
        organization_id: acme.id,
        metadata: { fields: ['settings'], settings: { logo, custom_css, accent_color: '#112233' } },
      },
    ])
    expect(logo).toBe(acme.settings.logo_dark)
    expect([before.length, (await assets()).map(({ type }) => type).sort()]).toEqual([3, ['css', 'png']])
    expect((await app.call(acme.settings.logo)).status).toBe(404)
    expect((await app.call(logo)).status).toBe(200)
    expect((await put(looks)).body.settings).toEqual(acme.settings)
  })

  test('is refused with the allowed values, and nothing is stored', async () => {
    const before = await assets()
    await app.events()
    const bad: [string, Json, RegExp][] = [
      ['logo', 'https://example.com/logo.png', /PNG, SVG, WebP or JPEG picture of at most 64 KiB/],
      ['logo', uri('png', SVG), /^The bytes are not a picture of the type that the data URI names\.$/],
      ['logo', uri('svg+xml', `<svg>${' '.repeat(65_536)}`), /^The picture is larger than 64 KiB\.$/],
      ['logo_dark', pngOf('\0\0\x10\x01'), /^The picture exceeds 4096 pixels in width or height\.$/],
      ['logo', uri('gif', 'GIF89a'), /PNG/],
      ['logo', '', /PNG/],
      ['logo', 7, /PNG/],
      ['logo_dark', 'data:text/html;base64,PHN2Zz4=', /PNG/],
      ['logo_dark', acme.settings.logo, /Send the content itself/],
      ['logo', acme.settings.logo.replace(acme.id, other.id), /Send the content itself/],
      ['logo', `/assets/organizations/${acme.id}/${'0'.repeat(32)}.svg`, /Send the content itself/],
      ...['../../etc/passwd', 'Ember', 'a.b', 'a b', '', 'x'.repeat(65), 7].map(
        (name): [string, Json, RegExp] => ['theme', name, /1 to 64 lower-case letters, digits and hyphens/],
      ),
      ...['red', '#12345', '#1234567', '112233', '#11223g', 'rgb(0,0,0)', '#112233;', 7].map(
        (color): [string, Json, RegExp] => ['accent_color', color, /six hexadecimal digits/],
      ),
      ['custom_css', '', /^The CSS is empty\. Send null to remove it\.$/],
      ['custom_css', ' '.repeat(10), /^The CSS is empty/],
      ['custom_css', 'a'.repeat(32_769), /32 KiB/],
      ['custom_css', 'ä'.repeat(16_385), /32 KiB/],
      ['custom_css', 'a\u0000', /CSS/],
      ['custom_css', { a: 1 }, /CSS/],
    ]
    for (const [name, value, allowed] of bad) {
      const answer = await put({ [name]: value })
      expect(refused(answer)).toEqual([`settings.${name}`])
      expect(answer.body.details[0].message).toMatch(allowed)
      expect(JSON.stringify(answer.body)).not.toContain('example.com')
    }
    expect(await assets()).toEqual(before)
    expect(await app.events()).toEqual([])
    expect((await put({ custom_css: 'a'.repeat(32_768) })).status).toBe(200)
    expect((await put(looks)).body.settings).toEqual(acme.settings)
  })

  test('the content of another organization cannot be reached by its URL', async () => {
    expect(refused(await put({ logo: acme.settings.logo }, 'other'))).toEqual(['settings.logo'])
    const third = { name: 'third', slug: 'third', settings: { custom_css: acme.settings.custom_css } }
    expect(refused(await app.admin('POST', '/organizations', third))).toEqual(['settings.custom_css'])
  })
})

test('a seed file contains them: an export applies to another instance, and changes nothing here', async () => {
  const { organizations = [] } = parse(renderSeed(await exportSeed(app.context, { secrets: false })))
  const [exported] = organizations.filter(({ slug }: Json) => slug === 'acme')
  const unset = Object.fromEntries(rightsFields.organizations.map(name => [name, null]))
  expect(exported.settings).toEqual({ ...unset, ...looks, accent_color: '#0a7d6c' })
  expect(await applySeed(app.context, readSeed({ organizations }))).toEqual([])
  const copy = await startApp()
  const { id: _, ...anew } = exported
  await applySeed(copy.context, readSeed({ organizations: [anew] }))
  const { body } = await copy.admin('GET', '/organizations/acme')
  expect(body.id).not.toBe(acme.id)
  expect(await (await copy.call(body.settings.logo)).text()).toBe(SVG)
})

test('deleting an organization deletes them; a change in another takes effect at once', async () => {
  const gone = await addOrganization(app, 'gone', { settings: looks })
  expect((await app.call(gone.settings.logo)).status).toBe(200)
  await app.admin('DELETE', '/organizations/gone')
  for (const name of ['logo', 'logo_dark', 'custom_css'])
    expect((await app.call(gone.settings[name])).status).toBe(404)
  expect((await assets()).filter(({ organization_id }) => organization_id === gone.id)).toEqual([])
  expect((await app.call(acme.settings.logo)).status).toBe(200)
})

test('mail uses the colour, and loads nothing', async () => {
  const mail = captureMail()
  const posting = await startApp({}, { mail })
  const { id } = await addOrganization(posting, 'acme', { settings: looks })
  const { id: ada } = await addUser(posting, 'ada', { organization_id: id })
  expect((await posting.admin('POST', `/users/${ada}/send-password-reset`)).status).toBe(204)
  await deliverMails(posting.context)
  expect(mail.mails[0]?.html).toMatch(/class="button" style="[^"]*background: #0a7d6c;/)
  expect(mail.mails[0]?.html).not.toMatch(/<img|url\(|@import|src=/)
})

test('OpenAPI shows them', async () => {
  const document = (await (await app.call('/api/v1/openapi.json')).json()) as Json
  const { properties } = document.components.schemas.OrganizationSettings
  const about = (name: string) => JSON.stringify(properties[name])
  for (const name of ['logo', 'logo_dark']) expect(about(name)).toContain('PNG, SVG, WebP or JPEG')
  expect(about('accent_color')).toContain('^#[0-9a-fA-F]{6}$')
  expect(about('custom_css')).toContain('32 KiB')
})

test('loading a page’s picture, font or stylesheet has no effect on a login', async () => {
  const walked = [authorizeUrl('acme-shop'), '/oauth/social/x', '/saml/x/login', '/account', '/oauth/login']
  for (const path of walked)
    for (const dest of ['image', 'font', 'style', 'script', 'object', 'embed', 'audio', '']) {
      const answer = await app.call(path, { headers: { 'sec-fetch-dest': dest } })
      expect([path, dest, answer.status]).toEqual([path, dest, 404])
      expect(answer.headers.getSetCookie()).toEqual([])
    }
  for (const dest of ['document', 'iframe', 'empty'])
    expect((await app.call(authorizeUrl('acme-shop'), { headers: { 'sec-fetch-dest': dest } })).status).toBe(
      200,
    )
})
