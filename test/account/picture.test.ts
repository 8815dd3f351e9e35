import { beforeEach, describe, expect, test } from 'bun:test'
import { hashSecret } from '#src/lib/secrets.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, signIn } from '#test/support/people.ts'
import { jpeg, png, pngChunk, webp } from '#test/support/photos.ts'
import { grantTokens } from '#test/support/tokens.ts'

const app = await startApp()
const client = await addClient(app, 'shop', { scopes: ['openid', 'profile', 'email'] })
let made = 0

const signedIn = async (more: Json = {}, start = '/account') => {
  const user = await addUser(app, `person-${++made}`, more)
  const browser = openBrowser(app, { ip: `198.51.100.${made}` })
  await signIn(browser, await browser.get(start), user.username)
  await app.events()
  return { user, browser }
}

const form = async (browser: Browser): Promise<Page> => browser.get('/account/profile')

/** Posts a file with the form of the page, as the buttons of the picture do. */
const upload = async (browser: Browser, file: Buffer, more: Record<string, string> = {}, origin?: string) => {
  const fields = more.csrf_token ? {} : formOf(await form(browser), '/account/profile').fields
  const data = new FormData()
  for (const [name, value] of Object.entries({ ...fields, ...more })) data.set(name, value)
  data.set('picture', new File([new Uint8Array(file)], 'photo', { type: 'image/png' }))
  const request = new Request('http://localhost:8080/account/picture', { method: 'POST', body: data })
  // The content type contains the boundary that the body uses, so content type and body come from one
  // request.
  const type = request.headers.get('content-type') ?? ''
  return browser.post('/account/picture', new Uint8Array(await request.arrayBuffer()), {
    'content-type': type,
    ...(origin && { origin }),
  })
}

const DESK = { name: 'desk', type: 'string', visible: 'user', editable: 'user' }
const pathOf = async ({ id }: Json): Promise<string> => (await app.admin('GET', `/users/${id}`)).body.picture
const pictures = () => app.context.store.read(async q => q.select().from(q.tables.pictures))
const types = async () => (await app.events()).map(({ type, metadata }) => [type, metadata])

beforeEach(async () => {
  await app.events()
})

describe('the picture of a person', () => {
  test('PEO-35 is uploaded, shown, served without metadata in a sandbox, replaced and removed', async () => {
    const { user, browser } = await signedIn()
    const saved = await upload(browser, png(8, 8, pngChunk('tEXt', Buffer.from('place'))))
    expect([saved.status, saved.location]).toEqual([303, '/account/profile?notice=picture_saved'])
    const path = await pathOf(user)
    expect(path).toMatch(/^\/assets\/people\/[0-9a-f]{32}\.png$/)
    expect(await types()).toEqual([['user.updated', { fields: ['picture'] }]])
    for (const page of ['/account', '/account/profile'])
      expect((await browser.get(page)).html).toContain(`<img class="avatar large" src="${path}" alt="">`)
    const answer = await app.call(path)
    expect(Buffer.from(await answer.arrayBuffer()).equals(png())).toBe(true)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'image/png',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining('sandbox'),
      'cross-origin-resource-policy': 'cross-origin',
    })
    await upload(browser, png())
    expect(await app.events()).toEqual([])
    await upload(browser, webp)
    expect((await app.call(path)).status).toBe(404)
    expect(await pathOf(user)).toEndWith('.webp')
    const { location } = await upload(browser, Buffer.alloc(0), { remove: '1' })
    expect(location).toBe('/account/profile?notice=picture_removed')
    expect(await pathOf(user)).toBeUndefined()
    expect((await pictures()).filter(({ user_id }) => user_id === user.id)).toEqual([])
  })

  test('PEO-34 PEO-35 is refused with its reason, and the former one stays', async () => {
    const { user, browser } = await signedIn()
    await upload(browser, jpeg)
    const path = await pathOf(user)
    await app.events()
    for (const [file, text] of [
      [Buffer.alloc(0), 'Choose a picture first.'],
      [Buffer.from('<script>alert(1)</script>'), 'This isn’t a PNG, JPEG or WebP picture'],
      [png(1025, 1), 'wider or taller than 1,024 pixels'],
      [Buffer.concat([png(), Buffer.alloc(300_000)]), 'larger than 256 KiB'],
    ] as const) {
      const page = await upload(browser, file)
      expect([page.status, page.heading]).toEqual([400, 'Profile'])
      expect(page.html).toContain(text)
      expect(page.html).toContain('<title>Error: ')
    }
    expect((await upload(browser, Buffer.alloc(1024 * 1024))).status).toBe(413)
    expect(await pathOf(user)).toBe(path)
    expect(await types()).toEqual(
      ['content', 'pixels', 'bytes'].map(reason => ['user.picture_refused', { reason }]),
    )
  })

  test('PEO-35 is stored or refused without loss of the text that is typed beside it, which is not stored', async () => {
    await app.admin('PUT', '/organizations/default', { settings: { user_attributes: [DESK] } })
    const { user, browser } = await signedIn({ attributes: { desk: '4.12' } })
    const stored = async () => (await app.admin('GET', `/users/${user.id}`)).body
    const { picture: _, updated_at: __, ...before } = await stored()
    expect((await upload(browser, png())).status).toBe(303)
    const typed = { first_name: 'Zoe', last_name: '', 'attribute.desk': '7.3' }
    for (const [file, button, status, text] of [
      [webp, {}, 200, 'Your picture is saved.'],
      [Buffer.alloc(0), {}, 400, 'Choose a picture first.'],
      [Buffer.alloc(0), { remove: '1' }, 200, 'Your picture is removed.'],
    ] as const) {
      const page = await upload(browser, file, { ...typed, ...button })
      expect([page.status, page.html.includes(text)]).toEqual([status, true])
      expect(page.html.includes('class="avatar large" src=')).toBe(!('remove' in button))
      expect(formOf(page, '/account/profile').fields).toMatchObject(typed)
    }
    expect(await stored()).toEqual({ ...before, updated_at: expect.any(String) })
    expect(await types()).toEqual(Array(3).fill(['user.updated', { fields: ['picture'] }]))
    await app.admin('PUT', '/organizations/default', { settings: { user_attributes: null } })
  })

  test('PEO-35 takes no form of another site, browser or kind', async () => {
    const { user, browser } = await signedIn()
    const other = await signedIn()
    const { csrf_token = '' } = formOf(await form(other.browser), '/account/profile').fields
    expect((await upload(browser, png(), { csrf_token })).status).toBe(403)
    expect((await upload(browser, png(), {}, 'https://evil.example')).status).toBe(403)
    expect((await browser.post('/account/picture', { csrf_token })).status).toBe(415)
    const broken = await browser.post('/account/picture', new Uint8Array(Buffer.from('--x')), {
      'content-type': 'multipart/form-data; boundary=x',
    })
    expect(broken.status).toBe(400)
    expect((await openBrowser(app).post('/account/picture', {})).status).toBe(403)
    expect(await pathOf(user)).toBeUndefined()
  })

  test('PEO-35 needs profile:update, and is charged as a write', async () => {
    await create(app, '/roles', { name: 'viewer', permissions: ['profile:read'] })
    const viewer = await signedIn({ roles: ['viewer'] })
    const { csrf_token = '' } = formOf(await viewer.browser.get('/account/data')).fields
    expect((await upload(viewer.browser, png(), { csrf_token })).status).toBe(403)
    const busy = await signedIn()
    const device = hashSecret(busy.browser.cookies.get('gatehouse_device_8080') ?? '')
    for (const owner of [`198.51.100.${made}`, device])
      app.context.charges.networks.take(
        `commit:${owner}`,
        { burst: 1_000, per_second: 5 },
        app.clock.now(),
        1_000,
      )
    expect((await upload(busy.browser, png())).status).toBe(429)
    for (const { user } of [viewer, busy]) expect(await pathOf(user)).toBeUndefined()
    expect(await app.events()).toEqual([])
  })

  test('PEO-36 is the claim `picture` of userinfo under `profile`, before the attribute, and in no token', async () => {
    const { user, browser } = await signedIn({ attributes: { picture: 'https://elsewhere.example/me.png' } })
    const claims = async (scope: string) => {
      const { access_token, id_token } = await grantTokens(app, client, user, { scope })
      expect(`${atob(access_token.split('.')[1])}${atob(id_token.split('.')[1])}`).not.toContain('picture')
      const answer = await app.call('/oauth/userinfo', {
        headers: { authorization: `Bearer ${access_token}` },
      })
      return ((await answer.json()) as Json).picture
    }
    expect(await claims('openid profile')).toBe('https://elsewhere.example/me.png')
    await upload(browser, png())
    expect(await claims('openid profile')).toBe(`http://localhost:8080${await pathOf(user)}`)
    expect(await claims('openid email')).toBeUndefined()
  })

  test('PEO-35 USR-22 is in the download, and goes with the person', async () => {
    const { user, browser } = await signedIn()
    await upload(browser, png())
    const path = await pathOf(user)
    const file = await browser.submit(await browser.get('/account/data'), {}, '/account/data/download')
    expect(JSON.parse(file.html).user.picture).toBe(`data:image/png;base64,${png().toString('base64')}`)
    expect((await app.admin('DELETE', `/users/${user.id}`)).status).toBe(204)
    expect((await app.call(path)).status).toBe(404)
    expect((await pictures()).filter(({ user_id }) => user_id === user.id)).toEqual([])
  })

  test('PEO-35 M-10 goes with the organization at once', async () => {
    const { id } = await addOrganization(app, 'brief')
    const { user, browser } = await signedIn({ organization_id: id }, '/account?organization=brief')
    await upload(browser, png())
    const path = await pathOf(user)
    expect((await app.call(path)).status).toBe(200)
    expect((await app.admin('DELETE', `/organizations/${id}`)).status).toBe(204)
    expect((await app.call(path)).status).toBe(404)
  })
})

test('PEO-37 an administrator removes a picture, if they may change the person', async () => {
  const { user, browser } = await signedIn({ roles: ['admin'] })
  await upload(browser, png())
  const helper = await callerOf(app, 'org_default', ['users:update', 'users:read'])
  await app.events()
  const remove = (token?: string) => app.admin('DELETE', `/users/${user.id}/picture`, undefined, token)
  expect((await remove(helper)).status).toBe(403)
  expect(await types()).toEqual([])
  expect((await remove()).status).toBe(204)
  expect((await app.events()).map(({ type, actor_id }) => [type, actor_id])).toEqual([
    ['user.updated', 'gatehouse-admin'],
  ])
  expect(await pathOf(user)).toBeUndefined()
  expect((await remove()).status).toBe(204)
  expect(await app.events()).toEqual([])
})
