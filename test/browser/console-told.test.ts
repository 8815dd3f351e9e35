/** Tests what people who do not see the console are told: names of buttons, notices, languages, the focus. */
import { expect } from 'bun:test'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addFactorTo } from '#test/support/routes.ts'
import { certify } from '#test/support/saml/certificate.ts'
import { newPair } from '#test/support/saml/identity-provider.ts'
import { grantTokens } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

const at = inConsole()

testInChromium(
  'CON-47 a button of a row names what it ends or removes, and so does the question',
  async () => {
    const { app, url } = at.served
    const user = await addUser(app, 'ida')
    await grantTokens(app, await addClient(app, 'board'), user)
    await addFactorTo(app, user.id, { type: 'totp', name: 'Phone' })
    const group = await create(app, '/groups', { name: 'Staff' })
    await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
    await enterConsole(at.page, url, '/console/sessions')
    await at.button('End · ida · board').waitFor()
    await at.walk(`groups/${group.id}`)
    await at.button('Remove · ida').waitFor()
    await at.page.getByLabel('Search users').fill('grace')
    await at.button('Add · grace').waitFor()
    await at.walk(`users/${user.id}`)
    await at.button(/^End · board · /).click()
    await at.page.getByRole('dialog', { name: 'End the session of ida at board?' }).waitFor()
    expect((await at.stored(`/sessions?user_id=${user.id}`)).data).toHaveLength(1)
    await at.button('Cancel').click()
    await at.page.getByText('Last used: Never').waitFor()
    await at.button('Remove · Phone').click()
    const dialog = at.page.getByRole('dialog', { name: 'Remove Phone?' })
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await at.stored(`/users/${user.id}/factors`)).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-47 a form is not sent while a role is chosen and not added, and the form says so',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/invitations')
    await at.button('Invite a person').click()
    const roles = at.page.getByRole('combobox', { name: 'Roles', exact: true })
    await roles.selectOption('admin')
    await at.button('Make the link').click()
    const said = at.page
      .locator('#roles-about')
      .getByText('Press “Add” to add admin, or take the choice back.')
    await said.waitFor()
    expect((await at.stored('/invitations')).data).toEqual([])
    await roles.selectOption('')
    await said.waitFor({ state: 'detached' })
    await at.button('Make the link').click()
    await at.page.getByRole('dialog', { name: 'The link' }).waitFor()
    expect((await at.stored('/invitations')).data).toMatchObject([{ roles: ['user'] }])
  },
  120_000,
)

testInChromium(
  'CON-47 cancelling the changes of an application takes a choice back that is not added',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/clients/shop#admission')
    const roles = at.page.locator('#allowed_roles')
    await roles.selectOption('user')
    await at.button('Add · user').click()
    await roles.selectOption('admin')
    const bar = at.page.locator('.save-bar')
    await bar.locator('.primary').click()
    await at.page.getByText('Press “Add” to add admin, or take the choice back.').waitFor()
    await bar.getByRole('button', { name: 'Cancel', exact: true }).click()
    await bar.waitFor({ state: 'detached' })
    expect(await roles.inputValue()).toBe('')
    expect(await at.stored('/clients/shop')).toMatchObject({ allowed_roles: [] })
  },
  120_000,
)

testInChromium(
  'CON-47 the same notice is announced each time',
  async () => {
    const { app, url } = at.served
    const client = await addClient(app, 'board')
    const user = await addUser(app, 'ida')
    for (let n = 0; n < 2; n++) await grantTokens(app, client, user)
    await enterConsole(at.page, url, `/console/users/${user.id}`)
    const toast = at.page.locator('.toast')
    await toast.evaluate(toast => {
      new MutationObserver(changes => {
        const added = changes.flatMap(({ addedNodes }) => [...addedNodes])
        toast.dataset.told = String(Number(toast.dataset.told ?? 0) + added.length)
      }).observe(toast, { childList: true })
      // The first notice must still be shown when the second one comes, on a slow machine too.
      const later = setTimeout
      const never = 4_000
      Object.assign(window, {
        setTimeout: (step: () => void, ms: number) => (ms === never ? 0 : later(step, ms)),
      })
    })
    const ends = at.page.getByRole('button', { name: /^End/ })
    for (const told of ['1', '2']) {
      await ends.first().click()
      await at.button('End').click()
      await until(async () => (await toast.getAttribute('data-told')) === told)
      await ends.nth(2 - Number(told)).waitFor({ state: 'detached' })
    }
    expect((await at.stored(`/sessions?user_id=${user.id}`)).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-47 the focus stays in a dialog when the element that had it is removed',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/invitations')
    await at.button('Invite a person').click()
    await at.button('Remove user').focus()
    await at.page.keyboard.press('Enter')
    await at.page.locator('dialog h2:focus', { hasText: 'Invite a person' }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-47 screen readers announce how many results the search has, and how many users are selected',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/users')
    const announced = async (
      within: string,
      steps: (readonly [act: () => Promise<void>, told: string])[],
    ) => {
      // Only a change of an element that is on the page already is announced.
      const element = await at.page.locator(`${within} [role=status]`).first().elementHandle()
      for (const [act, told] of steps) {
        await act()
        await until(async () => (await element?.innerText()) === told)
      }
    }
    const tick = (name: string) => () => at.page.getByLabel(`Select ${name}`).check()
    await at.page.getByLabel('Select grace').waitFor()
    await announced('main', [
      [tick('grace'), '1 user selected'],
      [tick('alan'), '2 users selected'],
    ])
    await at.page.keyboard.press('Control+k')
    const search = (term: string) => () =>
      at.page.getByRole('combobox', { name: 'Search or go to' }).fill(term)
    await announced('dialog', [
      [search('grace@'), 'Results: 1'],
      [search('zzzz'), 'Nothing found.'],
      [search('example.com'), 'Results: 4'],
    ])
  },
  120_000,
)

testInChromium(
  'CON-22 the messages of the API are marked as English, and name the wrong item of a list',
  async () => {
    await at.page.setExtraHTTPHeaders({ 'accept-language': 'ar' })
    await enterConsole(at.page, at.served.url, '/console/clients/shop#addresses')
    const field = at.page.locator('#redirect_uris')
    const isEnglish = (text: string) =>
      at.page.locator('[lang=en][dir=ltr]', { hasText: text }).filter({ visible: true }).waitFor()
    await field.fill('https://shop.example.com/back\none\ntwo')
    await field.press('Tab')
    await at.page.locator('.save-bar .primary').click()
    await isEnglish('one A redirect URI must be an absolute URI.')
    await isEnglish('two A redirect URI must be an absolute URI.')
    expect(await at.page.locator('[data-refused="redirect_uris.0"]').count()).toBe(0)

    await at.page.route('**/clients/shop', route => route.abort())
    await field.fill('https://shop.example.com/back')
    await at.page.locator('.save-bar .primary').click()
    const own = at.page.locator('.save-bar [role=alert] p')
    await own.waitFor()
    expect(await own.getAttribute('lang')).toBeNull()
  },
  120_000,
)

testInChromium(
  'CON-22 the end of a certificate is a date of the language',
  async () => {
    const notAfter = new Date('2031-01-31T12:00:00Z')
    const { id } = await create(at.served.app, '/identity-providers', {
      type: 'saml',
      alias: 'acme',
      name: 'Acme',
      entity_id: 'https://idp.example/metadata',
      sso_url: 'https://idp.example/sso',
      certificates: [await certify(newPair(), { notAfter })],
    })
    await enterConsole(at.page, at.served.url, `/console/identity-providers/${id}`)
    await at.page.getByText(/^until Jan 31, 2031, /).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-22 in Japanese the family name comes first, in names and in forms',
  async () => {
    const names = { first_name: '美咲', last_name: '田中' }
    const user = await addUser(at.served.app, 'tanaka', { ...names, roles: ['admin'] })
    await at.page.setExtraHTTPHeaders({ 'accept-language': 'ja' })
    await enterConsole(at.page, at.served.url, `/console/users/${user.id}`, 'tanaka')
    await at.heading('田中 美咲')
    await at.page.locator('.me-text', { hasText: '田中 美咲' }).waitFor()
    const fields = at.page.locator('[name=last_name], [name=first_name]')
    const order = () => fields.evaluateAll(all => all.map(each => (each as HTMLInputElement).name))
    expect(await order()).toEqual(['last_name', 'first_name'])
    await at.walk('users/new')
    expect(await order()).toEqual(['last_name', 'first_name'])
  },
  120_000,
)
