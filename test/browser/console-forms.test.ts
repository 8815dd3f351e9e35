/** Tests forms of the console: refusals, a server without mail, notices, and secrets that are shown once. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addUser } from '#test/support/people.ts'

const at = inConsole()
const { button, heading } = at

testInChromium(
  'CON-12 a refusal goes away when its field is edited; a bad username is marked once, under its rule',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/users/new')
    const name = page.getByLabel('Username')
    await page.getByText('3 to 128 letters (a–z), digits, dots').waitFor()
    await name.fill('two words')
    await page.getByLabel('Email', { exact: true }).fill('new@example.com')
    // The browser would show its own message for this event. The console prevents that.
    const seen = await name.evaluateHandle(field => ({
      prevented: new Promise<boolean>(resolve =>
        field.addEventListener('invalid', event => resolve(event.defaultPrevented), { once: true }),
      ),
    }))
    await button('Add the user').click()
    await page.locator('.complaint:visible').waitFor()
    expect(await seen.evaluate(({ prevented }) => prevented)).toBe(true)
    expect(await name.evaluate(field => field === document.activeElement)).toBe(true)

    await name.fill('grace')
    await button('Add the user').click()
    await page.locator('form [role=alert]').waitFor()
    await page.locator('[data-refused=username]').waitFor()
    await page.getByLabel('Last name').fill('Other')
    expect(await page.locator('[data-refused=username]').count()).toBe(1)
    await name.fill('grace-two')
    await page.locator('[data-refused=username]').waitFor({ state: 'detached' })
    expect(await page.locator('form [role=alert]').count()).toBe(0)
    await button('Add the user').click()
    await heading('Other')
  },
  120_000,
)

testInChromium(
  'CON-52 without a mail server an invitation is a link, and the console says where mail is set',
  async () => {
    const { page, served } = at
    await page.setViewportSize({ width: 1280, height: 500 })
    await enterConsole(page, served.url, '/console/invitations')
    await button('Invite a person').click()
    const dialog = page.getByRole('dialog', { name: 'Invite a person' })
    const way = dialog.getByLabel('How they get it')
    expect(await way.inputValue()).toBe('link')
    expect(await way.locator('option[value=mail]').isDisabled()).toBe(true)
    await dialog.getByText('Mail is not set up').waitFor()
    expect(await axeFindings(page)).toEqual([])
    const box = await dialog.getByRole('button', { name: 'Make the link' }).boundingBox()
    expect((box?.y ?? 500) + (box?.height ?? 0)).toBeLessThan(500)
    await page.keyboard.press('Escape')

    for (const path of ['settings', '']) {
      await at.walk(path)
      await page.getByText('GATEHOUSE_SMTP_URL and GATEHOUSE_MAIL_FROM').waitFor()
      await page.getByRole('link', { name: 'Mail in the guide' }).click()
      await heading('Mail')
    }
  },
  120_000,
)

testInChromium(
  'CON-57 a reload after an application was connected says that its secret was shown once',
  async () => {
    const { page, served } = at
    // Carol may not read applications.
    await create(served.app, '/roles', { name: 'connector', permissions: ['clients:create'] })
    await addUser(served.app, 'carol', { roles: ['connector', 'user'] })
    for (const username of ['carol', 'ada']) {
      await enterConsole(page, served.url, '/console/clients/+new', username)
      await page.getByLabel('Name', { exact: true }).fill(username === 'ada' ? 'Wiki' : 'Other')
      await button('Connect').click()
      await heading(/Wiki|Other/)
      await page.reload()
      await heading(/is connected/)
      await page.getByText('Its secret was shown once').waitFor()
      if (username === 'carol') await page.context().clearCookies()
    }
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('main').getByRole('link', { name: 'Application', exact: true }).click()
    await heading('Wiki')
    expect(page.url()).toEndWith('/console/clients/wiki')
  },
  120_000,
)

testInChromium(
  'CON-58 a message covers no button of a form, and ends with its screen; a changed form has one call',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url)
    await page.getByRole('link', { name: 'Users', exact: true }).click()
    await page.getByRole('link', { name: /Grace Example/ }).click()
    await page.getByLabel('First name').fill('Anne')
    expect(await page.getByText('As curl').locator('visible=true').count()).toBe(1)
    const [message, bar] = await Promise.all(
      ['.toast', '.save-bar'].map(part => page.locator(part).evaluate(box => box.getBoundingClientRect())),
    )
    expect(message?.bottom).toBeLessThanOrEqual(bar?.top ?? 0)
    await page.setViewportSize({ width: 390, height: 844 })
    const tops = await page
      .locator('.save-bar > button')
      .evaluateAll(all => all.map(each => each.getBoundingClientRect().top))
    expect(new Set(tops).size).toBe(1)
    await page.setViewportSize({ width: 1280, height: 900 })
    // The message is shown for four seconds.
    const told = page.locator('.toast p').waitFor()
    await at.save()
    await told
    await page.getByRole('link', { name: 'Roles', exact: true }).click()
    await heading('Roles')
    expect(await page.locator('.toast p').count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-14 empty claims are left out of a save, and count as no repetition of a claim',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/clients/shop#tokens')
    for (const _ of [1, 2]) await button('Add a claim').click()
    await page.getByLabel('Claim', { exact: true }).nth(1).waitFor()
    expect(await page.locator('.complaint').count()).toBe(0)
    await page.locator('[name=scopes]').fill('openid')
    await at.save()
    expect(await at.stored('/clients/shop')).toMatchObject({ scopes: ['openid'], claims: {} })
  },
  120_000,
)

testInChromium(
  'CON-57 the page of a new application without a secret says nothing of a secret after a reload',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/clients/+new')
    await page.getByRole('radio', { name: /^Single-page application/ }).check()
    await page.getByLabel('Name', { exact: true }).fill('Wiki')
    await button('Connect').click()
    await heading(/Wiki/)
    await page.reload()
    await heading('wiki is connected')
    expect(await page.getByText('Its secret was shown once').count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-06 a new address of a user counts as unverified until the administrator says otherwise',
  async () => {
    const { page, served } = at
    const [{ id }] = (await at.stored('/users?search=grace')).data
    await served.app.admin('PUT', `/users/${id}`, { email_verified: true })
    await enterConsole(page, served.url, `/console/users/${id}`)
    const email = page.getByLabel('Email', { exact: true })
    const isVerified = page.getByRole('checkbox', { name: /^The email address is verified/ })
    await email.fill('GRACE@example.com')
    expect(await isVerified.isChecked()).toBe(true)
    await email.fill('grace@new.example')
    expect(await isVerified.isChecked()).toBe(false)
    await email.fill('grace@example.com')
    expect(await isVerified.isChecked()).toBe(true)
    for (const isKnown of [true, false]) {
      const address = `grace@${isKnown}.example`
      await email.fill(`${address}.typo`)
      await isVerified.check()
      await email.fill(address)
      expect(await isVerified.isChecked()).toBe(false)
      await isVerified.setChecked(isKnown)
      await at.save()
      await button('Save changes').waitFor({ state: 'detached' })
      expect(await isVerified.isChecked()).toBe(isKnown)
      expect(await at.stored(`/users/${id}`)).toMatchObject({ email: address, email_verified: isKnown })
    }
    const changes = (await served.app.events()).filter(({ type }) => type === 'user.updated')
    expect(changes.slice(-2).map(({ metadata }) => metadata.fields)).toEqual([
      ['email'],
      ['email_verified', 'email'],
    ])
  },
  120_000,
)

testInChromium(
  'CON-12 on a phone a refusal fits the bar that saves',
  async () => {
    const { page, served } = at
    await page.setViewportSize({ width: 320, height: 700 })
    await enterConsole(page, served.url, '/console/clients/shop#addresses')
    await page.getByLabel('Redirect URIs').fill('one')
    await at.button('Save changes').click()
    await page.locator('.save-bar .request-id').waitFor()
    // A part that is too wide sticks out at the start of the bar, to which nobody can scroll.
    const leftOf = (selector: string) =>
      page.locator(selector).evaluate(element => element.getBoundingClientRect().left)
    expect(await leftOf('.save-bar .notice')).toBeGreaterThan(await leftOf('.save-bar'))
  },
  120_000,
)
