/** Tests in a browser how the console shows and chooses organizations, also when there are many. */
import { expect } from 'bun:test'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { addDynamicClient } from '#test/support/routes.ts'

const at = inConsole()
const { stored } = at

const rows = () => at.page.locator('.rows > li, tbody > tr')
const organization = () => at.page.getByRole('combobox', { name: 'Organization' })

/** Adds an organization, and then more organizations than the admin API lists on one page. */
const addAcme = async () => {
  const { app } = at.served
  const acme = await addOrganization(app, 'acme', { name: 'Acme Laboratories' })
  for (let n = 0; n < 100; n++) await addOrganization(app, `tenant-${n}`)
  return acme
}

testInChromium(
  'CON-61 among many organizations, a list names the organization of each object and is narrowed to it',
  async () => {
    const { app, url } = at.served
    const { id: organization_id } = await addAcme()
    await addUser(app, 'wile', { organization_id })
    await addClient(app, 'rockets', { organization_id })
    await create(app, '/roles', { name: 'tester', permissions: [], organization_id })
    await create(app, '/groups', { name: 'Testers', organization_id })
    await create(app, '/webhooks', {
      name: 'Boom',
      url: 'https://acme.example/',
      events: ['*'],
      organization_id,
    })
    await enterConsole(at.page, url, '/console/roles')
    await at.page.getByRole('heading', { level: 2, name: 'Acme Laboratories' }).waitFor()
    for (const list of ['users', 'clients', 'groups', 'webhooks']) {
      await at.walk(list)
      await rows()
        .getByText(/Acme Laboratories/)
        .waitFor()
      await organization().fill('acme')
      await at.page.waitForURL(`${url}/console/${list}?organization_id=${organization_id}`)
      await at.page.waitForFunction(() => document.querySelectorAll('.rows > li, tbody > tr').length === 1)
    }
  },
  120_000,
)

testInChromium(
  'CON-61 Back shows a list with the filters that it had, and the object of another organization links to it',
  async () => {
    const { id: organization_id } = await addAcme()
    for (const username of ['wile', 'roadrunner']) await addUser(at.served.app, username, { organization_id })
    await enterConsole(at.page, at.served.url, '/console/organizations/acme')
    await at.page.locator('.actions').getByRole('link', { name: 'Users' }).click()
    await at.page.getByRole('searchbox', { name: 'Search' }).fill('wil')
    await at.page.waitForURL(/search=wil/)
    await rows().getByRole('link', { name: /wile/ }).click()
    await at.page.locator('.lead').getByRole('link', { name: 'Acme Laboratories' }).waitFor()
    await at.back()
    await rows().getByRole('link', { name: /wile/ }).waitFor()
    expect(await rows().count()).toBe(1)
    expect(await at.page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('wil')
    await at.page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('[name=organization]')?.value === 'acme',
    )
    await at.page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Users' }).click()
    await rows().getByRole('link', { name: /grace/ }).waitFor()
  },
  120_000,
)

testInChromium(
  'CON-61 a new object belongs to the organization that the list shows or that the person chooses',
  async () => {
    const { id } = await addAcme()
    await enterConsole(at.page, at.served.url, `/console/clients?organization_id=${id}`)
    await at.page.getByRole('link', { name: 'Connect an application' }).click()
    await at.page.getByLabel('Name', { exact: true }).fill('Rockets')
    await at.button('Connect').click()
    await at.heading(/Rockets/)
    await at.walk('users/new')
    await at.page.getByLabel('Username').fill('wile')
    await at.page.getByLabel('Email', { exact: true }).fill('wile@acme.example')
    await organization().fill('Acme Laboratories')
    await at.page.getByText('As curl').click()
    await at.page.locator('pre').getByText(id).waitFor()
    await at.button('Add the user').click()
    await at.heading('wile')
    await at.walk(`groups?organization_id=${id}`)
    await at.button('Add a group').click()
    const dialog = at.page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('Testers')
    await dialog.getByRole('button', { name: 'Add a group' }).click()
    await at.heading('Testers')
    const owners = await Promise.all(
      [`/clients/rockets`, `/users?search=wile`, `/groups?organization_id=${id}`].map(stored),
    )
    expect(owners.map(each => (each.data?.[0] ?? each).organization_id)).toEqual([id, id, id])
  },
  120_000,
)

testInChromium(
  'CON-61 a form that is sent as soon as an organization is typed is sent with it',
  async () => {
    const { id } = await addOrganization(at.served.app, 'acme')
    await enterConsole(at.page, at.served.url, '/console/users/new')
    await at.page.getByLabel('Username').fill('wile')
    await at.page.getByLabel('Email', { exact: true }).fill('wile@acme.example')
    await organization().evaluate(async (input, id) => {
      Object.assign(input, { value: id })
      input.dispatchEvent(new InputEvent('input', { bubbles: true }))
      await null
      input.closest('form')?.requestSubmit()
    }, id)
    await at.heading('wile')
    expect((await stored('/users?search=wile')).data[0].organization_id).toBe(id)
  },
  120_000,
)

testInChromium(
  'CON-61 an organization keeps its address when its slug changes',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme', { name: 'Acme' })
    await enterConsole(page, served.url, '/console/organizations')
    await rows().getByRole('link', { name: /Acme/ }).click()
    await at.heading('Acme')
    await page.locator('[name=slug]').fill('acme-new')
    await at.save()
    await page.locator('.actions').getByRole('link', { name: 'Looks' }).click()
    await at.heading('Looks')
    await at.back()
    await at.heading('Acme')
    await page.reload()
    await at.heading('Acme')
    expect(await page.locator('[name=slug]').inputValue()).toBe('acme-new')
    expect((await stored(`/organizations/${id}`)).slug).toBe('acme-new')
  },
  120_000,
)

testInChromium(
  'CON-12 a choice of the password preset keeps the other password rules of the organization',
  async () => {
    const { page, served } = at
    const rules = { min_length: 20, require_digit: true }
    const settings = { password_policy: { preset: 'nist', ...rules } }
    const { id } = await addOrganization(served.app, 'acme', { settings })
    await enterConsole(page, served.url, `/console/organizations/${id}#sign-in`)
    const preset = page.getByLabel('Passwords')
    const before = (await stored('/events?type=organization.updated')).data.length
    await preset.selectOption('')
    await at.save()
    expect((await stored(`/organizations/${id}`)).settings).toEqual({ password_policy: rules })
    await preset.selectOption('nist')
    await preset.selectOption('')
    await page.getByLabel('People may delete their account').check()
    await at.save()
    expect((await stored(`/organizations/${id}`)).settings).toEqual({
      password_policy: rules,
      self_deletion: true,
    })
    expect((await stored('/events?type=organization.updated')).data).toHaveLength(before + 2)
  },
  120_000,
)

testInChromium(
  'CON-61 an organization leads to its own dynamic applications, for which a registration token is made',
  async () => {
    const { page, served } = at
    const { id } = await addOrganization(served.app, 'acme', { name: 'Acme' })
    await served.app.admin('PUT', `/organizations/${id}`, { settings: { client_registration: 'off' } })
    await addDynamicClient(served.app, id)
    await enterConsole(page, served.url, `/console/organizations/${id}#dynamic`)
    await page.getByRole('tabpanel').getByRole('link', { name: 'Dynamic applications' }).click()
    await page.waitForURL(`${served.url}/console/dynamic-clients?organization_id=${id}`)
    await page.getByRole('button', { name: /Agent/ }).waitFor()
    await page.getByRole('combobox', { name: 'Origin' }).selectOption('document')
    await page.getByText('This organization allows none: both policies are off.').waitFor()
    expect(page.url()).toEndWith(`?organization_id=${id}&source=document`)
    await at.button('Make a registration token').click()
    const dialog = page.getByRole('dialog')
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('dialog [name=organization_id]')?.value === 'acme',
    )
    await served.app.events()
    await dialog.getByRole('button', { name: 'Make a registration token' }).click()
    await page.getByRole('dialog', { name: 'The registration token' }).waitFor()
    expect((await served.app.events()).map(({ type, organization_id }) => [type, organization_id])).toEqual([
      ['initial_access_token.created', id],
    ])
    await at.button('Close').click()
    await at.walk(`organizations/${id}#joining`)
    await page.getByRole('combobox', { name: 'Self-registration' }).selectOption('approval')
    await page.getByRole('tabpanel').getByRole('link', { name: 'Approvals' }).click()
    await at.button('Leave without saving').click()
    await page.waitForURL(`${served.url}/console/registrations?organization_id=${id}`)
    await page.getByRole('link', { name: 'Who may register' }).click()
    await page.waitForURL(`${served.url}/console/organizations/${id}#joining`)
  },
  120_000,
)
