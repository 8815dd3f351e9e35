/** Tests the main tasks of the console in a browser, with the keyboard only. */
import { expect } from 'bun:test'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { keyboardOf } from '#test/support/keyboard.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addWaiting } from '#test/support/routes.ts'
import { grantTokens } from '#test/support/tokens.ts'

const shown = inConsole()
const { heading, stored } = shown

/** Opens the console at its overview. The tests then use only the keyboard. */
const enter = async () => {
  await enterConsole(shown.page, shown.served.url)
  await heading('Overview')
  return { page: shown.page, ...keyboardOf(shown.page) }
}
const userCalled = async (name: string) => (await stored(`/users?search=${name}`)).data[0]

testInChromium(
  'CON-11 by keyboard alone a user is found, changed and saved',
  async () => {
    const { page, type, goTo } = await enter()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
    await page.keyboard.type('grace')
    await page.getByRole('option', { name: /grace@example.com/ }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    await goTo('grace', /grace@example.com/)
    await heading('Grace Example')
    await type('First name', 'Grace Brewster')
    await page.keyboard.press('Enter')
    await heading('Grace Brewster Example')
    expect(await userCalled('grace')).toMatchObject({ first_name: 'Grace Brewster' })
  },
  120_000,
)

testInChromium(
  'CON-11 the search that opens while its last opening closes stays open',
  async () => {
    const { page } = await enter()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
    // The dialog is closed and the key is pressed in one task. The browser reports the close in a later task,
    // so the close event comes after the key event. The second animation frame comes after both events.
    await page.evaluate(() => {
      document.querySelector('dialog')?.close()
      document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))
      return new Promise<void>(resolve => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))
    })
    await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a group is made and gets a member',
  async () => {
    const { page, button, type, goTo } = await enter()
    await goTo('groups', 'Groups')
    await heading('Groups')
    await button('Add a group')
    await type('Name', 'Staff')
    await page.keyboard.press('Enter')
    await heading('Staff')
    // The list is read again when the typed text has settled, which would take the focus from the button.
    const found = page.waitForResponse(/search=grace&/)
    await type('Search users', 'grace')
    await found
    await button('Add · grace')
    await page.getByRole('button', { name: 'Remove · grace' }).waitFor()
    expect((await stored('/groups')).data[0]).toMatchObject({ name: 'Staff', member_count: 1 })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a user is added',
  async () => {
    const { page, type, goTo } = await enter()
    await goTo('add a user', 'Add a user')
    await heading('Add a user')
    await type('Username', 'katherine')
    await type('Email', 'katherine@example.com')
    await page.keyboard.press('Enter')
    await heading('katherine')
    expect(await userCalled('katherine')).toMatchObject({ email: 'katherine@example.com', enabled: true })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a person is invited by a link',
  async () => {
    const { page, button, type, reach, goTo } = await enter()
    await goTo('invite', /Invite/)
    await heading('Invitations')
    await button('Invite a person')
    await reach(page.getByRole('combobox', { name: 'How they get it' }))
    await page.keyboard.press('ArrowDown')
    await type('Email', 'ida@example.com')
    await button('Make the link')
    await page.getByText(`${shown.served.url}/account/invitation`).waitFor()
    await button('Close')
    await page.getByRole('link', { name: /ida@example.com/ }).waitFor()
    expect((await stored('/invitations')).data).toMatchObject([
      { email: 'ida@example.com', status: 'pending' },
    ])
  },
  120_000,
)

testInChromium(
  'CON-11 the arrow keys look through roles and applications, and a button or Enter adds one',
  async () => {
    const { app } = shown.served
    for (const name of ['helper', 'support']) await create(app, '/roles', { name, permissions: [] })
    const api = { name: 'Orders', identifier: 'https://orders.example.com' }
    const { id } = await create(app, '/apis', { ...api, scopes: [{ name: 'read', texts: {} }] })
    const { page, button, press, reach, goTo } = await enter()
    const look = async (name: string, ...seen: string[]) => {
      const choice = page.getByRole('combobox', { name, exact: true })
      await choice.locator('option', { hasText: seen.at(-1) ?? '' }).waitFor({ state: 'attached' })
      await reach(choice)
      for (const label of seen) {
        await page.keyboard.press('ArrowDown')
        expect(await choice.locator('option:checked').innerText()).toBe(label)
      }
    }
    const chips = () => page.locator('.chips li').allInnerTexts()
    await goTo('invite', /Invite/)
    await heading('Invitations')
    await button('Invite a person')
    await look('Roles', 'support', 'helper', 'admin')
    expect(await chips()).toEqual(['user'])
    await press(page.getByRole('combobox', { name: 'Roles' }), 'ArrowUp')
    await button('Add · helper')
    await page.getByRole('status').filter({ hasText: 'helper was added' }).waitFor()
    expect(await chips()).toEqual(['helper', 'user'])
    // The button gives the focus back, so the next key makes the next choice.
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Remove support' }).waitFor()
    await button('Make the link')
    await page.getByRole('dialog', { name: 'The link' }).waitFor()
    await button('Close')
    expect((await stored('/invitations')).data[0].roles).toEqual(['helper', 'support', 'user'])

    await shown.walk(`apis/${id}#clients`)
    await look('Served by', 'Northwind shop')
    await page.keyboard.press('ArrowUp')
    await look('Add an application', 'Northwind shop')
    expect(await chips()).toEqual([])
    expect(await page.getByRole('button', { name: 'Save changes' }).count()).toBe(0)
    await press(page.getByRole('button', { name: 'Add · Northwind shop' }).first())
    await page.getByRole('checkbox', { name: 'read' }).waitFor()
    await shown.save()
    expect(await stored(`/apis/${id}`)).toMatchObject({
      clients: [{ client_id: 'shop', scopes: ['read'] }],
      served_by: [],
    })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a user is disabled and signed out',
  async () => {
    const { page, button, press, goTo } = await enter()
    await goTo('grace', /grace@example.com/)
    await heading('Grace Example')
    const confirm = (name: string) =>
      press(page.getByRole('dialog').getByRole('button', { name, exact: true }))
    await button('Disable')
    await confirm('Disable')
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor()
    await button('Sign out everywhere')
    await confirm('Sign out')
    await page.getByText('Signed out everywhere').waitFor()
    expect(await userCalled('grace')).toMatchObject({ enabled: false })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone an application is connected',
  async () => {
    const { page, type, reach, goTo } = await enter()
    await goTo('connect', 'Connect an application')
    await heading('Connect an application')
    await reach(page.getByRole('radio', { name: /^Web/ }))
    await page.keyboard.press('ArrowDown')
    const kind = page.getByRole('group', { name: 'Kind' }).getByRole('radio', { checked: true })
    expect(await kind.getAttribute('value')).toBe('spa')
    await type('Name', 'Pet clinic')
    await page.keyboard.press('Enter')
    await heading('Pet clinic is connected')
    await reach(page.getByRole('button', { name: 'Copy' }).first())
    expect(await stored('/clients/pet-clinic')).toMatchObject({ kind: 'spa', type: 'public' })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a role is made, gets a permission and is given to a user',
  async () => {
    const { page, button, type, press, goTo } = await enter()
    await goTo('roles', 'Roles')
    await heading('Roles')
    await button('Add a role')
    await type('Name', 'helper')
    await page.keyboard.press('Enter')
    await heading('helper')
    await press(page.getByRole('group', { name: 'users' }).getByLabel('read'), 'Space')
    await button('Save changes')
    await page.getByText('Saved').waitFor()
    await goTo('grace', /grace@example.com/)
    await heading('Grace Example')
    await press(page.getByRole('checkbox', { name: /^helper/ }), 'Space')
    await button('Save changes')
    await page.getByRole('button', { name: 'Save changes' }).waitFor({ state: 'detached' })
    expect((await stored('/roles')).data[0]).toMatchObject({ name: 'helper', permissions: ['users:read'] })
    expect((await userCalled('grace')).roles).toEqual(['helper', 'user'])
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a setting of an organization is changed',
  async () => {
    await create(shown.served.app, '/organizations', { name: 'Acme', slug: 'acme' })
    const { page, type, press, reach, goTo } = await enter()
    await goTo('acme', /Acme/)
    await heading('Acme')
    await reach(page.getByRole('tab', { name: 'Names' }))
    await page.keyboard.press('ArrowRight')
    await press(page.getByLabel('Everyone needs a second factor'), 'Space')
    await type('Longest sign-in', '12h')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Save changes' }).waitFor({ state: 'detached' })
    const { settings } = await stored('/organizations/acme')
    expect(settings).toEqual({ session_ttl: '12h', mfa_required: true })
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone an event is found by a filter and opened',
  async () => {
    const { page, press, reach, goTo } = await enter()
    await goTo('audit log', 'Audit log')
    await heading('Audit log')
    const type = page.getByLabel('Event')
    await reach(type)
    while ((await type.inputValue()) !== 'client.created') await page.keyboard.press('ArrowDown')
    await page.waitForURL(/type=client.created/)
    const event = page.getByRole('button', { name: /Application registered.*shop/ })
    await press(event)
    await page.getByText('client.created', { exact: true }).waitFor()
    expect(await event.getAttribute('aria-expanded')).toBe('true')
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a session of another person is ended',
  async () => {
    const { app } = shown.served
    const client = await addClient(app, 'board')
    await grantTokens(app, client, await userCalled('grace'))
    const { page, press, goTo } = await enter()
    expect((await stored('/sessions')).data).toHaveLength(2)
    await goTo('sessions', 'Sessions')
    await heading('Sessions')
    await press(page.getByRole('listitem').filter({ hasText: 'grace' }).getByRole('button', { name: 'End' }))
    await press(page.getByRole('dialog').getByRole('button', { name: 'End' }))
    await page.getByText('The session has ended').waitFor()
    expect((await stored('/sessions')).data).toMatchObject([{ username: 'ada' }])
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone the signing keys are rotated',
  async () => {
    const { page, button, press, goTo } = await enter()
    await goTo('settings', 'Settings')
    await heading('Settings')
    await button('Rotate now')
    await press(page.getByRole('dialog').getByRole('button', { name: 'Rotate now' }))
    await page.getByText('The next keys are published').waitFor()
    expect((await stored('/keys')).data).toHaveLength(4)
  },
  120_000,
)

testInChromium(
  'CON-11 by keyboard alone a provider is connected and switched on',
  async () => {
    const { page, button, type, press, reach, goTo } = await enter()
    await goTo('identity providers', /Identity providers/)
    await heading('Identity providers')
    await button('Add a provider')
    await reach(page.getByRole('combobox', { name: 'Provider' }))
    for (const _ of ['Microsoft', 'GitLab']) await page.keyboard.press('ArrowDown')
    await type('Client ID at the provider', 'their-id')
    await type('Client secret at the provider', 'their-secret')
    await page.keyboard.press('Enter')
    await heading(/GitLab/)
    await press(page.getByRole('checkbox', { name: /^On/ }), 'Space')
    await button('Save changes')
    await page.getByRole('button', { name: 'Save changes' }).waitFor({ state: 'detached' })
    expect(await stored('/identity-providers/gitlab')).toMatchObject({ enabled: true, preset: 'gitlab' })
  },
  120_000,
)

testInChromium(
  'CON-11 the heading of an opened screen has the focus, and a dialog gives it back when it closes',
  async () => {
    const { page, button, type, press, goTo } = await enter()
    const isFocused = (selector: string, name: string) =>
      page.locator(`${selector}:focus`, { hasText: name }).waitFor()
    for (const name of ['Users', 'Roles', 'Roles', 'Audit log']) {
      await press(page.getByRole('navigation').getByRole('link', { name }))
      await isFocused('h1', name)
    }
    await shown.back()
    await isFocused('h1', 'Roles')
    await shown.forward()
    await isFocused('h1', 'Audit log')
    await goTo('grace', /grace@example.com/)
    await isFocused('h1', 'Grace Example')
    const dialog = page.getByRole('dialog')
    await button('Disable')
    await press(dialog.getByRole('button', { name: 'Disable' }))
    await isFocused('button', 'Enable')
    await button('Sign out everywhere')
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await isFocused('button', 'Sign out everywhere')
    await page.keyboard.press('Control+k')
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await isFocused('button', 'Sign out everywhere')
    await button('Delete')
    await type('Type grace to continue', 'grace')
    await page.keyboard.press('Enter')
    await isFocused('h1', 'Users')
    await goTo('connect', 'Connect an application')
    await type('Name', 'Pet clinic')
    await page.keyboard.press('Enter')
    await isFocused('h1', 'Pet clinic is connected')
  },
  120_000,
)

testInChromium(
  'CON-11 the focus stays on the screen when the element that had it is removed',
  async () => {
    const { app } = shown.served
    for (let n = 0; n < 50; n++) await addUser(app, `crew-${n}`)
    const waiting = await addWaiting(app, DEFAULT_ORGANIZATION)
    const { page, button, type, press, goTo } = await enter()
    const isFocused = (selector: string, name: string) =>
      page.locator(`${selector}:focus`, { hasText: name }).waitFor()
    await press(page.getByRole('navigation').getByRole('link', { name: 'Users' }))
    await page.getByRole('button', { name: 'Show more' }).focus()
    await page.keyboard.press('Enter')
    await isFocused('tbody tr:nth-child(51) input', '')
    await goTo('grace', /grace@example.com/)
    for (const [name, shown] of [
      ['Save changes', 'Grace Brewster Example'],
      ['Cancel', 'Grace Brewster Example'],
    ] as const) {
      await type('First name', name === 'Cancel' ? 'Nobody' : 'Grace Brewster')
      await button(name)
      await isFocused('h1', shown)
    }
    await button('Disable')
    await isFocused('dialog button', 'Cancel')
    await page.keyboard.press('Escape')
    await goTo('approvals', 'Approvals')
    await button(/^Approve/)
    await isFocused('h1', 'Approvals')
    expect((await stored(`/users/${waiting.id}`)).enabled).toBe(true)
  },
  120_000,
)
