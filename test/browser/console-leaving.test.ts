/** Tests that the console asks before unsaved changes are lost. */
import { expect } from 'bun:test'
import type { Json } from '#test/support/app.ts'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { holdCalls } from '#test/support/held-calls.ts'

const at = inConsole()
const { back, button, heading } = at

/** Opens a user and changes the first name without saving. */
const change = async () => {
  const { page, served } = at
  await enterConsole(page, served.url)
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await page.getByRole('link', { name: /Grace Example/ }).click()
  const name = page.getByLabel('First name')
  await name.fill('Kept')
  await button('Save changes').waitFor()
  const asked = page.getByRole('dialog', { name: 'Leave without saving?' })
  const stay = async () => {
    await page.keyboard.press('Escape')
    await asked.waitFor({ state: 'detached' })
    await heading('Grace Example')
    expect(page.url()).toMatch(/\/console\/users\/usr_/)
    expect(await name.inputValue()).toBe('Kept')
  }
  return { page, name, asked, stay }
}

testInChromium(
  'CON-56 unsaved changes are asked about before a link, the search or Back leaves the screen',
  async () => {
    const { page, asked, stay } = await change()
    const roles = page.getByRole('link', { name: 'Roles', exact: true })
    await roles.focus()
    await page.keyboard.press('Enter')
    await asked.waitFor()
    expect(await axeFindings(page)).toEqual([])
    await stay()
    expect(await roles.evaluate(link => link === document.activeElement)).toBe(true)

    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search or go to' }).fill('Northwind')
    await page.getByRole('option', { name: /Northwind shop/ }).click()
    await asked.waitFor()
    await stay()

    await back()
    await asked.waitFor()
    await stay()
    await back()
    await asked.getByRole('button', { name: 'Leave without saving' }).click()
    await heading('Users')
  },
  120_000,
)

testInChromium(
  'CON-56 a reload is asked about while changes are unsaved; after a save nothing is asked',
  async () => {
    const { page, stay } = await change()
    const types: string[] = []
    page.on('dialog', dialog => {
      types.push(dialog.type())
      void dialog.dismiss()
    })
    // The browser asks before the reload. The test answers no, so the page is not reloaded.
    await Promise.all([page.waitForEvent('dialog'), page.evaluate(() => location.reload())])
    await page.waitForFunction(() => document.readyState === 'complete')
    expect(types).toEqual(['beforeunload'])
    await stay()
    await at.save()
    await heading('Kept Example')
    await page.getByRole('link', { name: 'Roles', exact: true }).click()
    await heading('Roles')
    await back()
    await heading('Kept Example')
    await page.reload()
    await heading('Kept Example')
    expect(types).toEqual(['beforeunload'])
  },
  120_000,
)

testInChromium(
  'CON-56 the console asks before entries for a new user or application are lost, until it is made',
  async () => {
    const { page, served } = at
    const asked = page.getByRole('dialog', { name: 'Leave without saving?' })
    const roles = page.getByRole('link', { name: 'Roles', exact: true })
    await enterConsole(page, served.url, '/console/users/new')
    await heading('Add a user')
    await roles.click()
    await heading('Roles')
    await at.walk('users/new')
    await page.getByLabel(/^admin/).check()
    await roles.click()
    await asked.getByRole('button', { name: 'Leave without saving' }).click()
    await heading('Roles')
    for (const [path, field, action, made] of [
      ['users/new', 'username', 'Add the user', 'Typed Example'],
      ['clients/+new', 'name', 'Connect', 'typed is connected'],
    ] as const) {
      await at.walk(path)
      const input = page.locator(`[name=${field}]`)
      await input.fill('typed')
      await roles.click()
      await asked.getByRole('button', { name: 'Cancel' }).click()
      expect(await input.inputValue()).toBe('typed')
      if (path === 'users/new') {
        await page.locator('[name=email]').fill('typed@example.com')
        await page.locator('[name=first_name]').fill('Typed')
        await page.locator('[name=last_name]').fill('Example')
      }
      await button(action).click()
      await heading(made)
      await roles.click()
      await heading('Roles')
    }
  },
  120_000,
)

testInChromium(
  'CON-56 an answer that comes after the person has left the screen opens no other screen',
  async () => {
    const { page, served } = at
    const operators = await create(served.app, '/groups', { name: 'Operators' })
    const grace = (await at.stored('/users?search=grace')).data[0].id
    await enterConsole(page, served.url)
    const fill = async (values: Record<string, string>) => {
      for (const [name, value] of Object.entries(values)) await page.locator(`[name=${name}]`).fill(value)
    }
    const leaveDuring = async (action: string, method: string, notice: string, meanwhile?: () => unknown) => {
      const calls = await holdCalls(page, method)
      await button(action).click()
      await calls.held
      await at.walk(`users/${grace}`)
      await heading('Grace Example')
      await page.getByLabel('First name').fill('Kept')
      await meanwhile?.()
      calls.release()
      await page.getByText(notice, { exact: true }).waitFor()
      expect(page.url()).toBe(`${served.url}/console/users/${grace}`)
      expect(await page.getByLabel('First name').inputValue()).toBe('Kept')
      await page.unrouteAll()
    }
    await at.walk('clients/+new')
    await fill({ name: 'Slow' })
    await leaveDuring('Connect', 'POST', 'Slow was added')
    const addDuring = async (method: string, username: string, more = '', meanwhile?: () => unknown) => {
      await at.walk('users/new')
      const email = `${username}@example.com`
      await fill({ username, email, first_name: 'Slow', last_name: 'Example' })
      await page.getByRole('checkbox', { name: 'Operators' }).check()
      await leaveDuring('Add the user', method, `${username} was added${more}`, meanwhile)
    }
    await addDuring('PUT', 'joining')
    await addDuring('POST', 'slow')
    const members = (await at.stored(`/groups/${operators.id}/members`)).data
    expect(members.map(({ username }: Json) => username)).toEqual(['slow', 'joining'])
    const made = (await at.stored('/events')).data.map(({ type }: Json) => type)
    const added = ['group.updated', 'user.created']
    expect(made.slice(0, 5)).toEqual([...added, ...added, 'client.created'])
    const remove = () => served.app.admin('DELETE', `/groups/${operators.id}`)
    await addDuring('POST', 'late', ' · Not in every group', remove)
  },
  120_000,
)

testInChromium(
  'CON-56 a dialog stays while its call runs, so that a secret is shown',
  async () => {
    const { page, served } = at
    const dialog = page.getByRole('dialog')
    await enterConsole(page, served.url)
    for (const [path, action, title] of [
      ['clients/shop', 'Make a new secret', 'The new secret'],
      ['dynamic-clients', 'Make a registration token', 'The registration token'],
    ] as const) {
      await at.walk(path)
      await button(action).click()
      const calls = await holdCalls(page, 'POST')
      await dialog.getByRole('button', { name: action }).click()
      await calls.held
      expect(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true)
      const closedBy = (value: string) =>
        dialog.evaluate((element, value) => element.setAttribute('closedby', value), value)
      // Other browsers do not know the attribute, and then ask the page before Escape closes the dialog.
      await closedBy('unknown')
      await page.keyboard.press('Escape')
      await closedBy('none')
      for (let times = 0; times < 2; times++) await page.keyboard.press('Escape')
      await back()
      const asked = page.getByRole('dialog', { name: 'Leave without saving?' })
      await asked.getByRole('button', { name: 'Cancel' }).click()
      expect(page.url()).toBe(`${served.url}/console/${path}`)
      calls.release()
      const shown = page.getByRole('dialog', { name: title })
      await shown.getByRole('button', { name: 'Close' }).click()
      await shown.waitFor({ state: 'detached' })
      await page.unrouteAll()
    }
    const made = (await at.stored('/events')).data.map(({ type }: { type: string }) => type)
    expect(made.slice(0, 2)).toEqual(['initial_access_token.created', 'client.secret_regenerated'])
  },
  120_000,
)
