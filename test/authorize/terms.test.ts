import { beforeEach, describe, expect, test } from 'bun:test'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { optionsOf, sendForm } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
await addClient(app, 'shop')
let made = 0

const setTerms = async (terms: Json | null, slug = 'default') => {
  const { status, body } = await app.admin('PUT', `/organizations/${slug}`, { settings: { terms } })
  return { status, body }
}
const accepted = async ({ id }: Json): Promise<string[]> =>
  (await app.admin('GET', `/users/${id}/terms`)).body.data.map(({ version }: Json) => version)
const person = () => addUser(app, `person-${++made}`)
const asks = { status: 200, heading: 'Terms of use' }
const goTo = async (browser: Browser, user: Json, url = authorizeUrl('shop')) =>
  signIn(browser, await browser.get(url), user.username)

beforeEach(async () => {
  await setTerms({ version: '1', text: 'Be kind.\nAlways.', url: 'https://example.com/terms' })
  await app.events()
})

describe('terms of an organization', () => {
  test('PEO-38 are accepted once, before the application gets a code', async () => {
    const user = await person()
    const browser = openBrowser(app)
    const page = await goTo(browser, user)
    expect(page).toMatchObject(asks)
    expect(page.html).toContain('Be kind.')
    expect(page.html).toContain('href="https://example.com/terms"')
    expect(await accepted(user)).toEqual([])
    await app.events()
    const { accept: _, ...unticked } = formOf(page, '/oauth/terms').fields
    const refused = await browser.post('/oauth/terms', unticked)
    expect(refused).toMatchObject({ status: 400, heading: 'Terms of use' })
    expect(await app.events()).toEqual([])
    const end = await browser.follow(await browser.submit(page, { accept: '1' }))
    expect(answerOf(end)).toHaveProperty('code')
    expect(await accepted(user)).toEqual(['1'])
    const [event] = await app.events()
    expect(event).toMatchObject({
      type: 'user.terms_accepted',
      actor_id: user.id,
      target_id: user.id,
      metadata: { version: '1' },
    })
    expect(answerOf(await browser.get(authorizeUrl('shop')))).toHaveProperty('code')
    expect(answerOf(await goTo(openBrowser(app), user))).toHaveProperty('code')
  })

  test('PEO-38 are asked again in a new version, also for the account; prompt=none answers interaction_required', async () => {
    const user = await person()
    const browser = openBrowser(app)
    const page = await goTo(browser, user, '/account')
    expect(page).toMatchObject(asks)
    const late = await browser.submit(page, { accept: '1', version: '0' })
    expect(await browser.follow(late)).toMatchObject(asks)
    expect((await browser.follow(await browser.submit(page, { accept: '1' }))).heading).toBe('Your account')
    await setTerms({ version: '2', text: 'Be kinder.' })
    expect(answerOf(await browser.get(authorizeUrl('shop', { prompt: 'none' }))).error).toBe(
      'interaction_required',
    )
    const again = await browser.get('/account')
    expect(again).toMatchObject(asks)
    await browser.submit(again, { accept: '1' })
    expect(await accepted(user)).toHaveLength(2)
    await setTerms(null)
    expect((await browser.get('/account')).heading).toBe('Your account')
  })

  test('PEO-38 the form works for its own login and request alone, and counts once when sent twice at once', async () => {
    const user = await person()
    const browser = openBrowser(app)
    const page = await goTo(browser, user)
    const other = openBrowser(app)
    await goTo(other, await person())
    expect((await other.submit(page, { accept: '1' })).status).toBe(403)
    await app.events()
    await Promise.all([browser.submit(page, { accept: '1' }), browser.submit(page, { accept: '1' })])
    const types = (await app.events()).map(({ type }) => type)
    expect(types.filter(type => type === 'user.terms_accepted')).toHaveLength(1)
  })

  test('PEO-38 are asked after another step, also by a second copy of its form', async () => {
    const desk = { name: 'desk', type: 'string', visible: 'user', editable: 'user', required: true }
    const settings = { user_attributes: [desk] }
    expect((await app.admin('PUT', '/organizations/default', { settings })).status).toBe(200)
    const user = await person()
    const browser = openBrowser(app)
    const page = await goTo(browser, user)
    await app.events()
    for (const desk of ['first', 'second']) {
      const copy = await browser.submit(page, { 'attribute.desk': desk }, '/oauth/attributes')
      expect(await browser.follow(copy)).toMatchObject(asks)
    }
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.updated'])
    expect((await app.admin('GET', `/users/${user.id}`)).body.attributes).toEqual({ desk: 'first' })
    await app.admin('PUT', '/organizations/default', { settings: { user_attributes: null } })
  })

  test('PEO-38 have a version, and a text or an https address', async () => {
    for (const terms of [
      { version: '1' },
      { version: '', text: 'x' },
      { text: 'x' },
      { version: '1', url: 'http://example.com/' },
      { version: '1', url: 'mailto:a@example.com' },
      { version: '1', text: 'x'.repeat(32 * 1024 + 1) },
      'https://example.com/terms',
    ])
      expect([terms, (await setTerms(terms as Json)).status]).toEqual([terms, 422])
  })

  test('PEO-39 are accepted in the form of an invitation', async () => {
    const { invitation_url } = await create(app, '/invitations', { delivery: 'link' })
    const username = `person-${++made}`
    const browser = openBrowser(app)
    const names = { first_name: 'Bob', last_name: 'Roe', username, email: `${username}@example.com` }
    const page = await browser.submit(await browser.get(invitation_url), names)
    expect(page.html).toContain('Be kind.')
    const send = (fields: Record<string, string>) =>
      browser.submit(
        { ...page, forms: page.forms.filter(({ fields: all }) => Object.hasOwn(all, 'password')) },
        { password: PASSWORD, password_repeat: PASSWORD, ...fields },
      )
    const without = (await send({ version: '0', accept: '1' })).status
    expect(without).toBe(400)
    expect((await browser.follow(await send({ accept: '1' }))).heading).toBe('Your account')
    const [user] = (await app.admin('GET', `/users?search=${username}`)).body.data
    expect(await accepted(user)).toEqual(['1'])
  })

  test('PEO-39 are accepted in the form of an invitation with a passkey too', async () => {
    const { invitation_url } = await create(app, '/invitations', { delivery: 'link' })
    const username = `person-${++made}`
    const browser = openBrowser(app)
    const names = { first_name: 'Bob', last_name: 'Roe', username, email: `${username}@example.com` }
    const page = await browser.submit(await browser.get(invitation_url), names)
    const credential = newPasskey().create(optionsOf(page))
    const form = page.forms.find(({ fields }) => Object.hasOwn(fields, 'credential'))
    const { accept: _, ...unticked } = form?.fields ?? {}
    const refused = await browser.post('/account/invitation', { ...unticked, credential })
    expect(refused.status).toBe(400)
    expect((await app.admin('GET', `/users?search=${username}`)).body.data).toEqual([])
    const done = await sendForm(browser, page, 'credential', { credential, accept: '1' })
    expect(done.heading).toBe('Save your recovery codes')
    const [user] = (await app.admin('GET', `/users?search=${username}`)).body.data
    expect(await accepted(user)).toEqual(['1'])
  })

  test('PEO-38 USR-22 M-02 stay in the organization, are in the download, and go with the person', async () => {
    await addOrganization(app, 'free')
    const user = await person()
    const browser = openBrowser(app)
    const page = await goTo(browser, user, '/account')
    await browser.submit(page, { accept: '1' })
    const file = await browser.submit(await browser.get('/account/data'), {}, '/account/data/download')
    expect(JSON.parse(file.html).terms).toMatchObject([{ version: '1', accepted_at: expect.any(String) }])
    expect((await app.admin('DELETE', `/users/${user.id}`)).status).toBe(204)
    const rows = await app.context.store.read(async q => q.select().from(q.tables.terms_acceptances))
    expect(rows.filter(({ user_id }) => user_id === user.id)).toEqual([])
  })
})
