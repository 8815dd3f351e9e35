/** Tests in a browser how the console changes each kind of object. */
import { expect } from 'bun:test'
import type { Json } from '#test/support/app.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addUser } from '#test/support/people.ts'
import { png } from '#test/support/photos.ts'

const at = inConsole()
const { button } = at
const failure = { status: 503, error: 'temporarily_unavailable', error_description: 'The database is busy.' }

/**
 * For each form: a field, the text that one person types into this field, and the change that another person
 * saves meanwhile.
 */
const edits: [kind: string, field: string, typed: string, theirs: object][] = [
  ['users', 'first_name', 'Mine', { first_name: 'Theirs' }],
  ['clients', 'name', 'Mine', { name: 'Theirs' }],
  ['apis', 'name', 'Mine', { name: 'Theirs' }],
  ['roles', 'description', 'Mine', { description: 'Theirs' }],
  ['groups', 'name', 'Mine', { name: 'Theirs' }],
  ['organizations', 'display_name', 'Mine', { display_name: 'Theirs' }],
  ['looks', 'settings.accent_color', '#123456', { settings: { accent_color: '#654321' } }],
  ['identity-providers', 'name', 'Mine', { name: 'Theirs' }],
  ['webhooks', 'name', 'Mine', { name: 'Theirs' }],
  ['settings', 'backup_keep', '9', { backup_keep: 8 }],
]

testInChromium(
  'CON-07 each form asks whose change to keep after a conflict, and shows the call and the difference',
  async () => {
    const { page, served } = at
    const paths = await fillConsole(served.app)
    await enterConsole(page, served.url)
    for (const [kind, field, typed, theirs] of edits) {
      const shown = paths.find(each => each.startsWith(`/${kind}/`) && !each.endsWith('new')) ?? `/${kind}`
      const path = shown.replace('/looks/', '/organizations/')
      await at.walk(shown.slice(1))
      const input = page.locator(`[name="${field}"]`)
      await input.fill(typed)
      expect((await served.app.admin('PUT', path, theirs)).status).toBe(200)
      await page.getByText('1 change', { exact: true }).click()
      const bar = page.locator('.save-bar')
      expect([kind, await bar.locator('ins').innerText()]).toEqual([kind, typed])
      await bar.getByText('As curl').click()
      expect([kind, await bar.locator('pre').innerText()]).toEqual([
        kind,
        expect.stringContaining('curl -X PUT'),
      ])
      await button('Save changes').click()
      const dialog = page.getByRole('dialog', { name: 'Someone else changed this meanwhile' })
      await dialog.getByText(Object.hasOwn(theirs, 'settings') ? '#654321' : /^(?:Theirs|8)$/).waitFor()
      expect([kind, await input.inputValue()]).toEqual([kind, typed])
      await dialog.getByRole('button', { name: 'Keep mine and save' }).click()
      await button('Save changes').waitFor({ state: 'detached' })
      expect([kind, await input.inputValue()]).toEqual([kind, typed])
      expect([kind, JSON.stringify(await at.stored(path))]).toEqual([
        kind,
        expect.stringContaining(`"${field.split('.').at(-1)}":${/^\d+$/.test(typed) ? typed : `"${typed}"`}`),
      ])
    }
  },
  300_000,
)

testInChromium(
  'CON-07 after a conflict only the settings that another person changed are shown, with their old values',
  async () => {
    const { page, served } = at
    const path = '/organizations/default'
    await served.app.admin('PUT', path, { settings: { session_ttl: '1h', remember_browser_days: 7 } })
    await enterConsole(page, served.url, `/console${path}#joining`)
    await page.locator('[name="settings.registration"]').selectOption('open')
    await served.app.admin('PUT', path, { settings: { session_ttl: '3h', mfa_required: true } })
    await button('Save changes').click()
    const dialog = page.getByRole('dialog', { name: 'Someone else changed this meanwhile' })
    await dialog.getByText('settings.session_ttl').waitFor()
    expect(await dialog.locator('dt').allTextContents()).toEqual([
      'settings.session_ttl',
      'settings.mfa_required',
    ])
    expect(await dialog.locator('del').allTextContents()).toEqual(['1h', 'empty'])
    expect(await dialog.locator('ins').allTextContents()).toEqual(['3h', 'true'])
    expect(await axeFindings(page)).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-07 keeping mine takes back no other setting or attribute that another person has saved',
  async () => {
    const { page, served } = at
    const { app, url } = served
    const attributes = { desk: '1', note: 'old', team: 'red' }
    const { id } = await addUser(app, 'ida', { attributes })
    await app.admin('PUT', '/organizations/default', { settings: { session_ttl: '1h' } })
    await enterConsole(page, url, '/console/looks/default')
    await page.locator('[name="settings.accent_color"]').fill('#123456')
    await app.admin('PUT', '/organizations/default', { settings: { session_ttl: '3h' } })
    await page.locator('.save-bar summary').first().click()
    await page.locator('.save-bar').getByText('As curl').click()
    await page.locator('.save-bar pre', { hasText: `'{"settings":{"accent_color":"#123456"}}'` }).waitFor()
    await button('Save changes').click()
    await button('Keep mine and save').click()
    await button('Save changes').waitFor({ state: 'detached' })
    expect((await at.stored('/organizations/default')).settings).toMatchObject({
      accent_color: '#123456',
      session_ttl: '3h',
    })

    const policy = (rules: Json) =>
      app.admin('PUT', '/organizations/default', { settings: { password_policy: rules } })
    await policy({ min_length: 20, require_digit: true })
    await at.walk('organizations/default#sign-in')
    await page.getByLabel('Passwords').selectOption('nist')
    await policy({ min_length: 24 })
    await button('Save changes').click()
    await button('Keep mine and save').click()
    await button('Save changes').waitFor({ state: 'detached' })
    expect((await at.stored('/organizations/default')).settings).toMatchObject({
      password_policy: { preset: 'nist', min_length: 24, require_digit: true },
    })

    await at.walk(`users/${id}`)
    await page.locator('[name="attributes.note"]').fill('Mine')
    await button('Remove desk').click()
    const theirs = { ...attributes, team: 'blue', floor: '4' }
    await app.admin('PUT', `/users/${id}`, { attributes: theirs })
    await button('Save changes').click()
    await button('Keep mine and save').click()
    await button('Save changes').waitFor({ state: 'detached' })
    expect((await at.stored(`/users/${id}`)).attributes).toEqual({ note: 'Mine', team: 'blue', floor: '4' })
    expect(await page.locator('[name="attributes.team"]').inputValue()).toBe('blue')
  },
  120_000,
)

testInChromium(
  'CON-07 an action that reads a user again shows the attributes that another person has saved',
  async () => {
    const { page, served } = at
    const { app, url } = served
    const { id } = await addUser(app, 'eve', {
      attributes: { desk: '1', note: 'old', team: 'red' },
      enabled: false,
    })
    await enterConsole(page, url, `/console/users/${id}`)
    const input = (name: string) => page.locator(`[name="attributes.${name}"]`)
    await input('note').fill('Mine')
    await button('Remove desk').click()
    const theirs = { desk: '1', note: 'old', team: 'blue', floor: '4' }
    await app.admin('PUT', `/users/${id}`, { attributes: theirs })
    await button('Enable').click()
    await input('floor').waitFor()
    expect([await input('team').inputValue(), await input('note').inputValue()]).toEqual(['blue', 'Mine'])
    expect(await input('desk').count()).toBe(0)
    await input('note').fill('Also mine')
    await button('Save changes').click()
    await button('Save changes').waitFor({ state: 'detached' })
    expect((await at.stored(`/users/${id}`)).attributes).toEqual({
      note: 'Also mine',
      team: 'blue',
      floor: '4',
    })
  },
  120_000,
)

testInChromium(
  'CON-07 an action that changes no attribute keeps an attribute that is half typed',
  async () => {
    const { page, served } = at
    const { app, url } = served
    const { id } = await addUser(app, 'eve', { attributes: { note: 'old' }, enabled: false })
    await enterConsole(page, url, `/console/users/${id}`)
    await page.locator('[name="attributes.note"]').fill('Mine')
    await button('Add an attribute').click()
    await button('Enable').click()
    await button('Disable').waitFor()
    await page.locator('[name="other-1"]').fill('floor')
    await page.locator('[name="attributes.floor"]').fill('4')
    await button('Save changes').click()
    await button('Save changes').waitFor({ state: 'detached' })
    expect(await at.stored(`/users/${id}`)).toMatchObject({
      attributes: { note: 'Mine', floor: '4' },
      enabled: true,
    })
  },
  120_000,
)

testInChromium(
  'CON-07 using theirs shows theirs in each field, so that the next change keeps it',
  async () => {
    const { page, served } = at
    const path = '/organizations/default'
    await enterConsole(page, served.url, `/console${path}#joining`)
    const policy = page.locator('[name="settings.registration"]')
    await policy.selectOption('open')
    const settings = { allowed_domains: ['theirs.example'], client_registration: 'open' }
    await served.app.admin('PUT', path, { settings })
    await button('Save changes').click()
    await button('Use theirs').click()
    await button('Save changes').waitFor({ state: 'detached' })
    const domains = page.getByLabel('Allowed email domains')
    expect(await domains.inputValue()).toBe('theirs.example')
    await domains.press('End')
    await domains.pressSequentially(' mine.example')
    await at.save()
    expect((await at.stored(path)).settings).toEqual({
      ...settings,
      allowed_domains: ['theirs.example', 'mine.example'],
    })

    await policy.selectOption('open')
    await served.app.admin('PUT', path, { settings: { session_ttl: '3h' } })
    await button('Save changes').click()
    await page.route(/\/organizations\/[^/]+$/, route => route.fulfill({ status: 503, json: failure }))
    await button('Use theirs').click()
    await page.locator('.save-bar').getByText(failure.error_description).waitFor()
    expect(await policy.inputValue()).toBe('open')
  },
  120_000,
)

testInChromium(
  'CON-17 each object is shown as YAML and as curl, and its deletion as curl',
  async () => {
    const { page, served } = at
    const paths = await fillConsole(served.app)
    await enterConsole(page, served.url)
    for (const kind of ['users', 'clients', 'apis', 'roles', 'groups', 'identity-providers', 'webhooks']) {
      const path = paths.find(each => each.startsWith(`/${kind}/`) && !each.endsWith('new')) ?? ''
      await at.walk(path.slice(1))
      const card = page.locator('.card', { has: page.getByRole('heading', { name: 'As code' }) })
      await card.getByText('As YAML').click()
      const section = kind.replace('-', '_')
      await card.getByText(new RegExp(`^(?:# .+\n)?${section}:\n`)).waitFor()
      await card.getByText('As curl').click()
      await card.getByText('curl -X GET').waitFor()
      await button('Delete').click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('As curl').click()
      await dialog.getByText('curl -X DELETE').waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
  },
  300_000,
)

testInChromium(
  'CON-17 YAML names the groups and roles that it needs, and is not shown without a logo that the object has',
  async () => {
    const { page, served } = at
    const { admin } = served.app
    await create(served.app, '/groups', { name: 'admin', roles: [] })
    await admin('PUT', '/clients/shop', { allowed_groups: ['admin'], allowed_roles: ['user'] })
    await enterConsole(page, served.url, '/console/clients/shop')
    await page.getByText('As YAML').click()
    await page.getByText(/^# The instance or this file must have: groups admin\n/).waitFor()
    await admin('PUT', '/clients/shop', {
      logo: `data:image/png;base64,${Buffer.from(png()).toString('base64')}`,
    })
    await at.walk('clients')
    await at.walk('clients/shop')
    await page.getByText('As YAML').click()
    await page.getByText('Pictures, styles and certificates are not shown here').waitFor()
  },
  120_000,
)
