/** Tests the limits and refusals of the console's fields, in a browser. */
import { expect } from 'bun:test'
import type { Locator } from 'playwright-core'
import type { Limit } from '#src/console/app/api-form.tsx'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { fillConsole } from '#test/support/console-screens.ts'

const at = inConsole()
const { button } = at

/** Forms by screen. Each form has an operation, a button that opens the form, and fields with a limit. */
const forms: [screen: string, operation: string, open: string, fields: string[]][] = [
  ['users/new', 'POST /users', '', ['username', 'email', 'first_name', 'last_name', 'organization_id']],
  ['users/', 'PUT /users/*', '', ['username', 'email', 'first_name', 'last_name']],
  ['clients/+new', 'POST /clients', '', ['name', 'client_id', 'redirect_uris', 'organization_id']],
  [
    'clients/',
    'PUT /clients/*',
    '',
    [
      ...['name', 'description', 'access_token_ttl', 'refresh_token_ttl'],
      ...['client_uri', 'initiate_login_uri', 'policy_uri', 'tos_uri'],
      ...['redirect_uris', 'post_logout_redirect_uris', 'web_origins', 'scopes'],
    ],
  ],
  ['roles', 'POST /roles', 'Add a role', ['name', 'description', 'organization_id']],
  ['roles/', 'PUT /roles/*', '', ['description']],
  ['groups', 'POST /groups', 'Add a group', ['name', 'organization_id']],
  ['groups/', 'PUT /groups/*', '', ['name', 'description']],
  ['organizations', 'POST /organizations', 'Add an organization', ['name', 'slug']],
  [
    'organizations/',
    'PUT /organizations/*',
    '',
    [
      ...['display_name', 'name', 'slug', 'settings.remember_browser_days'],
      ...['settings.terms.version', 'settings.terms.text', 'settings.terms.url'],
      ...['settings.allowed_domains', 'settings.login_domains', 'settings.blocked_clients'],
      ...['0', '1', '2'].flatMap(at =>
        ['name', 'label'].map(name => `settings.user_attributes.${at}.${name}`),
      ),
    ],
  ],
  [
    'looks/',
    'PUT /organizations/*',
    '',
    ['accent_color', 'terms_url', 'privacy_url', 'support_url'].map(name => `settings.${name}`),
  ],
  ['apis', 'POST /apis', 'Add an API', ['name', 'identifier', 'organization_id']],
  ['apis/', 'PUT /apis/*', '', ['name', 'access_token_ttl', 'scopes.0.name', 'scopes.0.texts.en']],
  [
    'identity-providers',
    'POST /identity-providers',
    'Add a provider',
    ['name', 'alias', 'client_id', 'client_secret', 'organization_id'],
  ],
  ['identity-providers/', 'PUT /identity-providers/*', '', ['name', 'client_id']],
  ['webhooks', 'POST /webhooks', 'Add a webhook', ['name', 'url', 'events', 'organization_id']],
  ['webhooks/', 'PUT /webhooks/*', '', ['name', 'url', 'events']],
  ['invitations', 'POST /invitations', 'Invite a person', ['email', 'max_uses', 'organization_id']],
  ['settings', 'PUT /settings', '', ['backup_keep']],
]

const limitsOf = (): Record<string, Record<string, Limit>> =>
  JSON.parse(Bun.spawnSync([process.execPath, 'src/console/field-limits.ts']).stdout.toString())

/** Returns a text that the limit refuses. The text for a list has one item too many. */
const tooMuch = ({ maxLength, maxItems }: Limit): string => {
  if (maxItems !== undefined) return Array.from({ length: maxItems + 1 }, (_, n) => `x${n}`).join(' ')
  return maxLength === undefined ? '!' : 'x'.repeat(Math.min(maxLength, 100_000) + 1)
}

/** Opens the section of the form that has the field. */
const openSection = async (field: Locator): Promise<void> => {
  const tab = await field.evaluate(each => each.closest('[role=tabpanel]')?.getAttribute('aria-labelledby'))
  if (tab) await at.page.locator(`#${tab}`).click()
  await field.waitFor()
}

/** Types durations at the limits and beyond them. */
const testDuration = async (field: Locator, name: string, { min = 0, max = 0 }: Limit): Promise<void> => {
  const unit = name.endsWith('_days') ? 'd' : 's'
  const stored = await field.inputValue()
  for (const [count, isGood] of [
    [min - 1, false],
    [min, true],
    [max, true],
    [max + 1, false],
  ] as const) {
    await field.fill(`${count}${unit}`)
    const said = await field.evaluate(each => (each as HTMLInputElement).validationMessage)
    expect([name, count, said]).toEqual([
      name,
      count,
      isGood ? '' : expect.stringMatching(/^A number and s, m, h, d or w, such as (?:1[md]|5m)\.$/),
    ])
  }
  await field.fill(stored)
}

testInChromium(
  'CON-12 each field of a form has the limits of the API, and states the limits of a text in the API’s words',
  async () => {
    const { page, served } = at
    const paths = await fillConsole(served.app)
    const limits = limitsOf()
    await enterConsole(page, served.url)
    for (const [screen, operation, opener, fields] of forms) {
      const isOne = screen.endsWith('/')
      const path = isOne
        ? paths.find(each => each.startsWith(`/${screen}`) && !/\/\+?new$/.test(each))
        : `/${screen}`
      await at.walk((path ?? '').slice(1))
      if (opener) await button(opener).click()
      const form = page.locator(opener ? 'dialog form' : 'main form.form')
      for (const name of fields) await form.locator(`[name="${name}"]`).waitFor({ state: 'attached' })
      const shown = await form
        .locator('input[name], textarea[name]')
        .evaluateAll(all => all.map(each => (each as HTMLInputElement).name))
      const placeOf = (name: string) =>
        name.replaceAll(/\.\d+(?=\.)/g, '.*').replace(/texts\.\w+$/, 'texts.*')
      const limited = shown.filter(name => limits[operation]?.[placeOf(name)])
      expect([screen, limited.sort()]).toEqual([screen, fields.toSorted()])
      for (const name of fields) {
        const limit = limits[operation]?.[placeOf(name)] ?? {}
        const { message, min, max, required = false, item = {} } = limit
        const field = form.locator(`[name="${name}"]`)
        await openSection(field)
        const seen = await field.evaluate(each => {
          const { min, max, required } = each as HTMLInputElement
          return { min, max, required }
        })
        const isDuration = /_ttl$|_days$/.test(name)
        if (isDuration) await testDuration(field, name, limit)
        const textOf = (bound?: number) => (bound === undefined || isDuration ? '' : String(bound))
        expect([screen, name, seen.min ?? '', seen.max ?? '']).toEqual([
          screen,
          name,
          textOf(min),
          textOf(max),
        ])
        if (required) expect([screen, name, seen.required]).toEqual([screen, name, true])
        if (message === undefined) continue
        const stored = await field.inputValue()
        for (const [refused, reason] of [
          [tooMuch(limit), message],
          [tooMuch(item), item.message],
        ] as const) {
          if (reason === undefined) continue
          await field.fill(refused)
          const said = await field.evaluate(each => (each as HTMLInputElement).validationMessage)
          expect([screen, name, said]).toEqual([screen, name, reason])
        }
        await field.fill(stored)
      }
      if (opener) await page.keyboard.press('Escape')
    }
  },
  300_000,
)

testInChromium(
  'CON-12 a refusal stands at its field, which gets the focus, with the request id to copy',
  async () => {
    const { page, served } = at
    const { id } = (await at.stored('/users?search=grace')).data[0]
    await enterConsole(page, served.url, `/console/users/${id}`)
    await page.getByLabel('First name').fill('\u202egnihtyna')
    const refused = page.waitForResponse(answer => answer.status() === 422)
    await button('Save changes').click()
    const { request_id } = await (await refused).json()
    await page.locator('#first_name-about').getByText('No line breaks, control characters').waitFor()
    await page.locator('#first_name:focus').waitFor()
    const notice = page.getByRole('alert')
    expect(await notice.innerText()).toContain(request_id)
    expect(await notice.getByText('No line breaks').count()).toBe(0)

    const group = await create(served.app, '/groups', { name: 'Warehouse' })
    const role = await create(served.app, '/roles', { name: 'support', permissions: [] })
    await at.walk(`groups/${group.id}`)
    await page.getByRole('checkbox', { name: 'support' }).check()
    await served.app.admin('DELETE', `/roles/${role.id}`)
    await button('Save changes').click()
    await notice.getByText('roles').first().waitFor()
    expect(await notice.innerText()).toContain('Request ID')

    await at.walk('roles')
    await button('Add a role').click()
    await page.getByLabel('Name', { exact: true }).fill('admin')
    await page.locator('dialog').getByRole('button', { name: 'Add a role' }).click()
    await page.locator('#name-about').getByText('already has a role of this name').waitFor()
    expect(await page.getByText('already has a role of this name').count()).toBe(1)
  },
  120_000,
)

testInChromium(
  'CON-09 each screen of an object says that an unknown id does not exist',
  async () => {
    const { page, served } = at
    await enterConsole(page, served.url, '/console/users')
    const kinds = ['users', 'invitations', 'clients', 'apis', 'roles', 'groups', 'organizations', 'looks']
    for (const kind of [...kinds, 'identity-providers', 'webhooks', 'guide', 'elsewhere'])
      for (const id of [
        'unknown',
        'usr_0',
        'a%3Fb%2F..%2Fusers',
        '%00',
        '..%2Fusers',
        '%E0%A4%A',
        'x'.repeat(2_000),
      ]) {
        await at.walk(`${kind}/${id}`)
        await page.getByText('Not found', { exact: true }).first().waitFor()
        expect([kind, id, await page.getByText('It does not exist').count()]).toEqual([kind, id, 1])
      }
  },
  300_000,
)
