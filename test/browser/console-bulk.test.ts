/** Tests changes of several users at once. */
import { expect } from 'bun:test'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { holdCalls } from '#test/support/held-calls.ts'
import { addUser } from '#test/support/people.ts'

const at = inConsole()
const { button, heading, stored } = at
const userId = async (name: string): Promise<string> => (await stored(`/users?search=${name}`)).data[0].id

/** Begins to disable three users, and cancels while the first call runs. Returns the held calls. */
const cancelDuringFirst = async () => {
  const { page, served } = at
  await enterConsole(page, served.url, '/console/users')
  for (const name of ['grace', 'alan', 'barbara']) await page.getByLabel(`Select ${name}`).check()
  await button('Disable').click()
  const calls = await holdCalls(page, 'PUT')
  await button('Disable 3 users').click()
  await calls.held
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  return calls
}

testInChromium(
  'CON-06 Back stops a change of several users after the user whose call is running',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url)
    await at.walk('users')
    for (const name of ['grace', 'alan', 'barbara']) await page.getByLabel(`Select ${name}`).check()
    await button('Disable').click()
    const calls = await holdCalls(page, 'PUT')
    await button('Disable 3 users').click()
    await calls.held
    await at.back()
    await heading('Overview')
    calls.release()
    await page.getByText('Disable: 1 done').waitFor()
    expect((await stored('/users?enabled=false')).data).toHaveLength(1)
    expect((await stored('/events?type=user.disabled')).data).toHaveLength(1)
  },
  120_000,
)

testInChromium(
  'CON-06 cancelling a change of several users stops it after the running call and keeps the others selected',
  async () => {
    const { page } = at
    const calls = await cancelDuringFirst()
    expect(await button('Enable').isDisabled()).toBe(true)
    calls.release()
    await page.getByText('Disable: 1 done').waitFor()
    await page.getByRole('row', { name: /Disabled/ }).waitFor()
    expect(await page.getByRole('row', { name: /Disabled/ }).count()).toBe(1)
    await page.getByRole('toolbar').getByText('2 users selected').waitFor()
    expect((await stored('/users?enabled=false')).data).toHaveLength(1)

    await page.unrouteAll()
    for (const name of ['grace', 'alan', 'barbara']) await page.getByLabel(`Select ${name}`).check()
    const refusal = { status: 503, error: 'unavailable', error_description: 'The database is busy.' }
    let sent = 0
    await page.route('**/api/v1/admin/users/*', route =>
      ++sent < 3 ? route.continue() : route.fulfill({ status: 503, json: refusal }),
    )
    await button('Disable').click()
    await button('Disable 3 users').click()
    await page.getByText(refusal.error_description).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('toolbar').getByText('1 user selected').waitFor()
    await page
      .getByRole('row', { name: /Disabled/ })
      .nth(1)
      .waitFor()
    expect((await stored('/users?enabled=false')).data).toHaveLength(2)
  },
  120_000,
)

testInChromium(
  'CON-06 a change of several users that fails leaves the users selected whose turn has not come',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/users')
    for (const name of ['grace', 'alan', 'barbara']) await page.getByLabel(`Select ${name}`).check()
    await button('Disable').click()
    let calls = 0
    await page.route('**/users/usr_*', route => (calls++ === 0 ? route.continue() : route.abort()))
    await button('Disable 3 users').click()
    const refused = page.getByRole('dialog').getByRole('alert')
    await refused.getByText('Disable: 1 done').waitFor()
    // The sentence is the console's own, in the language of the page.
    expect(await refused.locator('p:has(code)').getAttribute('lang')).toBeNull()
    await page.keyboard.press('Escape')
    await page.getByRole('toolbar').getByText('2 users selected').waitFor()
    expect(calls).toBe(2)
    expect((await stored('/users?enabled=false')).data).toHaveLength(1)
    expect((await stored('/events?type=user.disabled')).data).toHaveLength(1)
  },
  120_000,
)

testInChromium(
  'CON-06 cancelling a change of several users shows the failure of the running call',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/users')
    for (const name of ['grace', 'alan', 'barbara']) await page.getByLabel(`Select ${name}`).check()
    await button('Disable').click()
    const refusal = { status: 403, error: 'forbidden', error_description: 'You lack a permission.' }
    const [sent, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let calls = 0
    await page.route('**/users/usr_*', async route => {
      calls++
      sent.resolve()
      await released.promise
      await route.fulfill({ status: 403, json: refusal })
    })
    await button('Disable 3 users').click()
    await sent.promise
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    released.resolve()
    await dialog.getByText(refusal.error_description).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('toolbar').getByText('3 users selected').waitFor()
    expect(calls).toBe(1)
    expect((await stored('/users?enabled=false')).data).toEqual([])
    expect((await stored('/events?type=user.disabled')).data).toEqual([])
  },
  120_000,
)

testInChromium(
  'CON-06 users that are deselected while a cancelled change ends stay deselected',
  async () => {
    const { page } = at
    const calls = await cancelDuringFirst()
    await page.getByRole('toolbar').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('toolbar').waitFor({ state: 'detached' })
    calls.release()
    await page.getByRole('row', { name: /Disabled/ }).waitFor()
    expect(await page.getByRole('toolbar').count()).toBe(0)
    expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(0)
    expect((await stored('/users?enabled=false')).data).toHaveLength(1)
    expect((await stored('/events?type=user.disabled')).data).toHaveLength(1)
  },
  120_000,
)

testInChromium(
  'CON-06 a change of several users names each refused user, changes the others and can be repeated',
  async () => {
    const { page, served } = at
    await create(served.app, '/roles', { name: 'desk', permissions: ['users:read', 'users:update'] })
    await addUser(served.app, 'helen', { roles: ['user', 'desk'] })
    await enterConsole(page, served.url, '/console/users', 'helen')
    for (const name of ['barbara', 'ada', 'alan', 'grace']) await page.getByLabel(`Select ${name}`).check()
    await served.app.admin('DELETE', `/users/${await userId('barbara')}`)
    await button('Disable').click()
    const refused = page.getByRole('dialog').getByRole('alert')
    for (const [label, result] of [
      ['Disable 4 users', 'Disable: 2 done'],
      ['Disable 2 users', 'Disable: 0 done'],
    ] as const) {
      await button(label).click()
      await refused.getByText(result).waitFor()
      await refused.getByText('barbara The user does not exist.').waitFor()
      await refused
        .locator('[lang=en]', { hasText: 'ada The target has permissions that you lack' })
        .waitFor()
    }
    await page.keyboard.press('Escape')
    await page.getByRole('toolbar').getByText('1 user selected').waitFor()
    expect(await page.getByLabel('Select ada').isChecked()).toBe(true)
    expect(await page.getByLabel('Select barbara').count()).toBe(0)
    const disabled = (await stored('/users?enabled=false')).data
    expect(disabled.map(({ username }: { username: string }) => username).sort()).toEqual(['alan', 'grace'])
    expect((await stored('/events?type=user.disabled')).data).toHaveLength(2)
  },
  120_000,
)
