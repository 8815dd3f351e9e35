/** Tests in a browser how the console changes each kind of object. */
import { expect } from 'bun:test'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'

const at = inConsole()
const { button } = at

/**
 * A field of each form, the text that one person types there, and the change that another person saves
 * meanwhile.
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
      const shown = paths.find(each => each.startsWith(`/${kind}/`) && !each.endsWith('/new')) ?? `/${kind}`
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
  120_000,
)

testInChromium(
  'CON-17 each object is shown as YAML and as curl, and its deletion as curl',
  async () => {
    const { page, served } = at
    const paths = await fillConsole(served.app)
    await enterConsole(page, served.url)
    for (const kind of ['users', 'clients', 'apis', 'roles', 'groups', 'identity-providers', 'webhooks']) {
      const path = paths.find(each => each.startsWith(`/${kind}/`) && !each.endsWith('/new')) ?? ''
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
  120_000,
)
