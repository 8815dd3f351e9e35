/** Tests what people who do not see the console are told: names of buttons, notices, languages, the focus. */
import { expect } from 'bun:test'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addFactorTo } from '#test/support/routes.ts'
import { grantTokens } from '#test/support/tokens.ts'

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
    await at.button(/^End · board · /).waitFor()
    await at.button('Remove · Phone').click()
    const dialog = at.page.getByRole('dialog', { name: 'Remove Phone?' })
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await at.stored(`/users/${user.id}/factors`)).data).toEqual([])
  },
  60_000,
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
  60_000,
)
