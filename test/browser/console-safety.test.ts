/** Tests confirmations before a change, and fields that stay filled in when it is refused. */
import { expect } from 'bun:test'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'

const at = inConsole()
const { button, heading, stored } = at

testInChromium(
  'CON-24 the console asks for the name before the last administrator is disabled, stripped or deleted',
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
    const go = asked.getByRole('button', { name: 'Go on without an administrator' })
    await asked.getByLabel('Type ada to go on').fill('grace')
    expect(await go.isDisabled()).toBe(true)
    expect((await stored(`/users/${id}`)).enabled).toBe(true)
    await asked.getByLabel('Type ada to go on').fill('ada')
    await go.click()
    await asked.waitFor({ state: 'detached' })
    await page.getByText('Your login has ended').or(page.getByText('No access')).first().waitFor()
    expect((await stored(`/users/${id}`)).enabled).toBe(false)
  },
  60_000,
)
