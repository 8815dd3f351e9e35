/** Tests the search over all objects and the links from objects to their events, in a browser. */
import { expect } from 'bun:test'
import { axeFindings } from '#test/support/axe.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'

const at = inConsole({}, { viewport: { width: 390, height: 844 } })
const option = (name: string | RegExp) => at.page.getByRole('option', { name })

testInChromium(
  'CON-11 on a phone a result of each kind fits, and a role is found among several pages of roles',
  async () => {
    const { app, url } = at.served
    const long = 'Northwind Traders of the Eastern and Western Provinces'
    const { id } = await addOrganization(app, 'northwind-traders-of-the-provinces', { name: long })
    const permissions = ['users:read']
    const role = await create(app, '/roles', {
      name: 'northwind-warehouse-supervisor',
      permissions,
      organization_id: id,
    })
    for (let n = 0; n < 100; n++) await create(app, '/roles', { name: `role-${n}`, permissions })
    await addUser(app, 'northwind.correspondence.department', { first_name: 'N', last_name: 'W' })
    await addClient(app, 'northwind-customer-relationship-management', {
      name: 'Northwind customers and suppliers',
    })
    await enterConsole(at.page, url)
    await at.page.keyboard.press('Control+k')
    const field = at.page.getByRole('combobox', { name: 'Search or go to' })
    await field.fill('NORTHWIND')
    for (const name of [/correspondence/, /customers/, /^Northwind Traders/, /supervisor.*Role.*Eastern/])
      await option(name).waitFor()
    const sizes = await at.page
      .locator('.found, .found [role=option], .found span')
      .evaluateAll(all => all.map(each => each.scrollWidth - each.clientWidth))
    expect(Math.max(...sizes)).toBe(0)
    expect(await axeFindings(at.page)).toEqual([])

    for (const [term, name] of [
      [role.id, /^northwind-warehouse/],
      [id, /^Northwind Traders/],
    ] as const) {
      await field.fill(term)
      await option(name).waitFor()
      await at.page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 1)
    }
    await field.fill('a')
    expect(await option(/Screen$/).allInnerTexts()).toEqual(
      [
        'Approvals',
        'Applications',
        'APIs',
        'Audit log',
        'Invitations',
        'Dynamic applications',
        'Organizations',
      ].map(title => expect.stringContaining(title)),
    )
    await field.fill('nothing like that')
    await at.page.getByText('Nothing found.').waitFor()
    expect(await axeFindings(at.page)).toEqual([])
    await at.page.route('**/roles?*', route => route.abort())
    await field.fill('northwind')
    await at.page.getByText('The server cannot be reached.').waitFor()
    expect(await at.page.getByText('Nothing found.').count()).toBe(0)
  },
  120_000,
)

testInChromium(
  'CON-11 the search takes words in any order and finds each action, settings by other names, and full names',
  async () => {
    const { app, url } = at.served
    await addUser(app, 'tbx', { email: 'tb@pets.example', first_name: 'Tom', last_name: 'Berger' })
    await addClient(app, 'pets', { name: 'Pets' })
    await enterConsole(at.page, url)
    await at.page.keyboard.press('Control+k')
    const field = at.page.getByRole('combobox', { name: 'Search or go to' })
    for (const [term, name] of [
      ['add user', /^Add a user/],
      ['role add', /^Add a role/],
      ['add group', /^Add a group/],
      ['add organization', /^Add an organization/],
      ['add api', /^Add an API/],
      ['smtp', /^Overview/],
      ['events', /^Audit log/],
      ['logo', /^Looks/],
      ['password', /^Sign-ins/],
      ['sign out', /^Your account/],
      ['tom berger', /^Tom Berger.*tbx · tb@pets\.example/],
    ] as const) {
      await field.fill(term)
      await option(name).waitFor()
    }
    await field.fill('pets')
    await option(/^Tom Berger/).waitFor()
    await option(/^Pets/).waitFor()
    expect(await option(/./).first().innerText()).toMatch(/^Pets/)
    await field.fill('logo')
    await option(/^Looks/).click()
    await at.heading('Looks')
  },
  120_000,
)

testInChromium(
  'CON-11 the result that the arrow keys choose is in view',
  async () => {
    await enterConsole(at.page, at.served.url)
    await at.page.keyboard.press('Control+k')
    // The list has one entry until the permissions of the person are read.
    await option(/^Overview/).waitFor()
    for (const [key, place] of [
      ['ArrowUp', 'last-child'],
      ['ArrowDown', 'first-child'],
    ] as const) {
      await at.page.keyboard.press(key)
      const chosen = at.page.locator(`[role=option]:${place}[aria-selected=true]`)
      await chosen.waitFor()
      const hidden = await chosen.evaluate(option => {
        const [inner, outer] = [option, option.parentElement ?? option].map(each =>
          each.getBoundingClientRect(),
        )
        return Math.max(0, (outer?.top ?? 0) - (inner?.top ?? 0), (inner?.bottom ?? 0) - (outer?.bottom ?? 0))
      })
      expect([key, hidden]).toEqual([key, 0])
    }
  },
  120_000,
)

testInChromium(
  'CON-11 a result that was chosen while its search ran stays chosen, until another text is typed',
  async () => {
    await enterConsole(at.page, at.served.url)
    await at.page.keyboard.press('Control+k')
    await option(/^Overview/).waitFor()
    const field = at.page.getByRole('combobox', { name: 'Search or go to' })
    // Both events come before the search has begun, on a slow machine too.
    await field.evaluate(async input => {
      Object.assign(input, { value: 'user' })
      input.dispatchEvent(new InputEvent('input', { bubbles: true }))
      await null
      input.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))
    })
    const chosen = at.page.locator('[role=option][aria-selected=true]')
    const told = at.page.getByRole('status').getByText(/^Results: /)
    await option(/^user.*Role/).waitFor()
    await told.waitFor({ state: 'attached' })
    expect(await chosen.innerText()).toStartWith('Add a user')
    await field.fill('users')
    await option(/^user.*Role/).waitFor({ state: 'detached' })
    expect(await chosen.innerText()).toStartWith('Users')
  },
  120_000,
)

testInChromium(
  'CON-10 on a phone the menu that is opened as soon as a screen is shown stays open',
  async () => {
    await enterConsole(at.page, at.served.url)
    await at.heading('Overview')
    const menu = at.button('Menu')
    await menu.evaluate(async button => {
      document.querySelector<HTMLElement>('.menu a[href$="/users"]')?.click()
      await null
      button.dispatchEvent(new MouseEvent('click', { bubbles: true }))
    })
    await at.heading('Users')
    await at.answered()
    expect(await menu.getAttribute('aria-expanded')).toBe('true')
  },
  120_000,
)

testInChromium(
  'CON-51 each object links to its events, which show their times with seconds and in UTC',
  async () => {
    const { app, url } = at.served
    const paths = await fillConsole(app)
    await enterConsole(at.page, url)
    const kinds = ['clients', 'apis', 'roles', 'groups', 'identity-providers', 'webhooks', 'invitations']
    for (const kind of kinds) {
      const path = paths.find(path => path.startsWith(`/${kind}/`) && !/\/\+?new$/.test(path)) ?? ''
      await at.walk(path.slice(1))
      await at.page.locator('.actions').getByRole('link', { name: 'Events', exact: true }).click()
      await at.heading('Audit log')
      await at.page.locator('li.event').first().waitFor()
      expect([kind, await at.page.locator('li.event').count()]).toEqual([kind, 1])
    }
    const [created] = (await at.stored('/events?type=invitation.created')).data
    const { timestamp } = created
    const seconds = timestamp.slice(17, 19)
    const time = at.page.locator('li.event time')
    expect(await time.innerText()).toMatch(new RegExp(`:\\d\\d:${seconds}\\b`))
    expect(await time.getAttribute('title')).toContain(timestamp)
    await at.page.locator('li.event button').click()
    const exact = at.page.locator('.facts time')
    expect(await exact.innerText()).toMatch(new RegExp(`20\\d\\d.*:${seconds}\\b`))
    expect(await exact.getAttribute('title')).toBe(timestamp)
  },
  120_000,
)

testInChromium(
  'CON-40 an invitation names its organization, its groups and the people, with links',
  async () => {
    const { app, url } = at.served
    const group = await create(app, '/groups', { name: 'Warehouse', roles: [] })
    const made = await create(app, '/invitations', {
      delivery: 'link',
      email: 'ida@example.com',
      groups: [group.id],
    })
    await enterConsole(at.page, url, `/console/invitations/${made.id}`)
    await at.page.locator('.facts').getByRole('link', { name: 'Warehouse' }).waitFor()
    await at.page.locator('.facts').getByRole('link', { name: 'Gatehouse' }).click()
    await at.heading('Gatehouse')
  },
  120_000,
)
