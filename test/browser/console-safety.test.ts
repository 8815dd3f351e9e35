/** Tests confirmations before a change, and fields that stay filled in after a refusal. */
import { expect } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { holdCalls } from '#test/support/held-calls.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'
import { addFactorTo } from '#test/support/routes.ts'

const at = inConsole()
const { button, heading, stored } = at

testInChromium(
  'CON-24 the console asks for the name before the last administrator is disabled, deleted or loses the role',
  async () => {
    const { page, served } = at
    const users = await stored('/users')
    const { id } = users.data.find(({ username }: { username: string }) => username === 'ada')
    const asked = page.getByRole('dialog', { name: 'This is the last administrator' })
    await enterConsole(page, served.url, `/console/users/${id}`)
    await heading('Ada Lovelace')

    await page.getByRole('checkbox', { name: 'admin' }).uncheck()
    await button('Save changes').click()
    await asked.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The organization would have no administrator').waitFor()
    expect(await page.getByRole('checkbox', { name: 'admin' }).isChecked()).toBe(false)
    await page.getByRole('form').or(page.locator('.save-bar')).getByRole('button', { name: 'Cancel' }).click()

    await page.goto(`${served.url}/console/users`)
    await page.getByLabel('Select ada').check()
    await page.getByLabel('Select grace').check()
    await button('Disable').click()
    await button('Disable 2 users').click()
    const go = asked.getByRole('button', { name: 'Continue without an administrator' })
    await asked.getByLabel('Type ada to continue').fill('grace')
    expect(await go.isDisabled()).toBe(true)
    expect((await stored(`/users/${id}`)).enabled).toBe(true)
    await asked.getByLabel('Type ada to continue').fill('ada')
    await go.click()
    await asked.waitFor({ state: 'detached' })
    await page.getByText('Your sign-in has ended').or(page.getByText('No access')).first().waitFor()
    expect((await stored(`/users/${id}`)).enabled).toBe(false)
  },
  120_000,
)

const userId = async (name: string): Promise<string> => (await stored(`/users?search=${name}`)).data[0].id

testInChromium(
  'CON-28 what was typed stays when the session or the permission ends during a change',
  async () => {
    const { page, served } = at
    const [ada, grace] = [await userId('ada'), await userId('grace')]
    await enterConsole(page, served.url, `/console/users/${grace}`)
    await heading('Grace Example')
    const name = page.getByLabel('First name')
    await name.fill('Kept')
    // Waits until the lists are loaded. The server would refuse a list that is requested after the end of the
    // session, and the refusal would open the dialog before Enter reaches the form.
    await at.answered()
    await served.app.admin('DELETE', `/users/${ada}/sessions`)
    await name.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Your sign-in has ended' })
    const [popup] = await Promise.all([
      page.waitForEvent('popup'),
      dialog.getByRole('button', { name: 'Continue' }).click(),
    ])
    expect(await name.inputValue()).toBe('Kept')
    await popup.locator('[name=password]').fill(PASSWORD)
    await popup.locator('[name=password]').press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('heading', { level: 1, name: 'Kept Example' }).waitFor()
    expect((await stored(`/users/${grace}`)).first_name).toBe('Kept')

    await page.getByLabel('Last name').fill('Also kept')
    await addUser(served.app, 'root', { roles: ['admin'] })
    await create(served.app, '/roles', { name: 'reader', permissions: ['users:read'] })
    await served.app.admin('PUT', `/users/${ada}`, { roles: ['reader'] })
    await page.getByLabel('Last name').press('Enter')
    await page.getByText('The permission users:update is required.').waitFor()
    expect(await page.getByLabel('Last name').inputValue()).toBe('Also kept')
    expect((await stored(`/users/${grace}`)).last_name).toBe('Example')
  },
  120_000,
)

testInChromium(
  'CON-62 the first key or click after the device slept for half an hour changes nothing and asks for a login',
  async () => {
    const { page, served } = at
    const grace = await userId('grace')
    await enterConsole(page, served.url)
    for (const save of [
      () => page.getByLabel('First name').press('Enter'),
      () => button('Save changes').click(),
    ]) {
      await page.goto(`${served.url}/console/users/${grace}`)
      await heading('Grace Example')
      await page.getByLabel('First name').fill('Changed')
      await at.answered()
      // Asleep, the device runs no timer of the page, but its clock goes on.
      await page.evaluate(pause => {
        const awake = Date.now
        Date.now = () => awake() + pause
      }, 31 * MINUTE)
      const answer = page.waitForResponse(answer => answer.request().method() === 'PUT')
      await save()
      expect((await answer).status()).toBe(401)
      const asked = page.getByRole('dialog', { name: 'Your sign-in has ended' })
      await asked.getByRole('button', { name: 'Cancel' }).click()
      expect(await page.getByLabel('First name').inputValue()).toBe('Changed')
      await button('Cancel').click()
    }
    expect((await stored(`/users/${grace}`)).first_name).toBe('Grace')
    expect((await stored('/events?type=user.updated')).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-24 the question before a user loses the last way in is asked for each factor',
  async () => {
    const { page, served } = at
    const { app, url } = served
    const pat = { username: 'pat', email: 'pat@example.com', first_name: 'Pat', last_name: 'Key' }
    const { id } = await create(app, '/users', { ...pat, invite: 'link' })
    const passkey = await addFactorTo(app, id, { alone: true })
    const totp = await addFactorTo(app, id, { type: 'totp', name: 'Phone' })
    await enterConsole(page, url, `/console/users/${id}`)
    const remove = (name: string) =>
      page.getByRole('listitem').filter({ hasText: name }).getByRole('button', { name: 'Remove' }).click()
    const dialog = page.getByRole('dialog', { name: /^Remove (?:Key|Phone)\?$/ })
    await remove('Key')
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.getByText('This person has no other way in.').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()

    await remove('Phone')
    await dialog.getByText('All sessions and sign-ins of this person end.').waitFor()
    const called = page.waitForRequest(request => request.method() === 'DELETE')
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    expect((await called).url()).toEndWith(`/users/${id}/factors/${totp}`)
    await dialog.waitFor({ state: 'detached' })
    expect((await stored(`/users/${id}/factors`)).data).toMatchObject([{ id: passkey }])
  },
  120_000,
)

const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>'
const FROM_RIGHT = 'שלום & "quoted" {{name}}'

testInChromium(
  'CON-29 hostile names are text on each screen; 10,000 characters and overrides are refused at their field',
  async () => {
    const { page, served } = at
    const { app, url } = served
    const wide = `${MARKUP}${'W'.repeat(128 - MARKUP.length)}`
    const scopes = [{ name: 'read', texts: { en: MARKUP } }]
    const user = await addUser(app, 'mallory', {
      first_name: MARKUP,
      last_name: FROM_RIGHT,
      attributes: { note: MARKUP },
    })
    const role = await create(app, '/roles', { name: 'odd', description: MARKUP, permissions: [] })
    const group = await create(app, '/groups', { name: wide, description: FROM_RIGHT, roles: ['odd'] })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    const tenant = await create(app, '/organizations', { name: wide, slug: 'odd', display_name: FROM_RIGHT })
    await app.admin('PUT', '/clients/shop', { name: wide, description: MARKUP })
    const api = await create(app, '/apis', { identifier: 'https://odd.example', name: wide, scopes })
    const hook = await create(app, '/webhooks', { name: wide, url: 'https://192.0.2.1/', events: ['*'] })
    const google = { type: 'oidc', preset: 'google', client_id: MARKUP, client_secret: 'y' }
    await create(app, '/identity-providers', { ...google, alias: 'odd', name: wide })

    await enterConsole(page, url)
    const screens: [path: string, text: string][] = [
      ['users', MARKUP],
      [`users/${user.id}`, MARKUP],
      ['roles', MARKUP],
      [`roles/${role.id}`, MARKUP],
      ['groups', wide],
      [`groups/${group.id}`, wide],
      ['organizations', 'שלום'],
      [`organizations/${tenant.id}`, 'odd'],
      ['clients', wide],
      ['clients/shop', wide],
      ['apis', wide],
      [`apis/${api.id}`, wide],
      ['webhooks', wide],
      [`webhooks/${hook.id}`, wide],
      ['identity-providers', wide],
      ['identity-providers/odd', wide],
      ['events', 'mallory'],
    ]
    for (const [path, text] of screens) {
      await at.walk(path)
      await page.waitForFunction(
        text =>
          document.body.innerText.includes(text) ||
          Array.from(document.querySelectorAll('input'), ({ value }) => value).some(each =>
            each.includes(text),
          ),
        text,
      )
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 })
        const seen = await page.evaluate(() => ({
          made: document.querySelectorAll('main img[src="x"], main script').length,
          overflow: document.documentElement.scrollWidth - innerWidth,
        }))
        expect([path, width, seen.made, Math.max(0, seen.overflow)]).toEqual([path, width, 0, 0])
      }
    }

    await page.setViewportSize({ width: 1280, height: 900 })
    await page.goto(`${url}/console/users/${user.id}`)
    await page.getByLabel('First name').fill('x'.repeat(10_000))
    await button('Save changes').click()
    await page.getByText('A line of at most 255 characters.').waitFor()
    expect(await page.locator('#first_name:user-invalid').count()).toBe(1)
    expect(await page.getByLabel('First name').inputValue()).toHaveLength(10_000)
    await page.getByLabel('First name').fill('\u202egnihtyna')
    await button('Save changes').click()
    await page.getByText('No line breaks, control characters').waitFor()
  },
  300_000,
)

testInChromium(
  'CON-12 a name is typed as the screen shows it to confirm a deletion, whatever spaces and accents it has',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url)
    for (const [name, typed] of [
      ['Ware  house', 'Ware house'],
      ['Bu\u0308ro', 'B\u00fcro'],
      ['A\u00a0B', 'A B'],
    ] as const) {
      const { id } = await create(served.app, '/groups', { name, roles: [] })
      await at.walk(`groups/${id}`)
      await button('Delete').click()
      const dialog = page.getByRole('dialog')
      const go = dialog.getByRole('button', { name: 'Delete' })
      await dialog.getByRole('textbox').fill(typed.slice(1))
      expect(await go.isDisabled()).toBe(true)
      await dialog.getByRole('textbox').fill(typed)
      await go.click()
      await heading('Groups')
      expect((await served.app.admin('GET', `/groups/${id}`)).status).toBe(404)
      expect((await stored(`/events?type=group.deleted&target_id=${id}`)).data).toHaveLength(1)
    }
  },
  120_000,
)

testInChromium(
  'CON-63 a double click on a button makes one call',
  async () => {
    const { page, served } = at
    const invitation = await create(served.app, '/invitations', { delivery: 'link' })
    const grace = await userId('grace')
    await enterConsole(page, served.url)
    await heading('Overview')
    const sent: string[] = []
    page.on('request', request => request.method() === 'POST' && sent.push(request.url()))
    for (const [path, name, event] of [
      [`invitations/${invitation.id}`, 'Make a new link', 'invitation.sent'],
      [`users/${grace}`, 'Make a sign-in link', 'user.updated'],
    ] as const) {
      await at.walk(path)
      const calls = await holdCalls(page, 'POST')
      await button(name).dblclick()
      await calls.held
      calls.release()
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
      expect((await stored(`/events?type=${event}`)).data).toHaveLength(1)
      await page.unrouteAll()
    }
    expect(sent).toHaveLength(2)
  },
  120_000,
)
