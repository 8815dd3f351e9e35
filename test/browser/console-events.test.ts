/** Tests the lines of the audit log in a browser. */
import { expect } from 'bun:test'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { testInChromium } from '#test/support/chromium.ts'
import { enterConsole, inConsole } from '#test/support/console.ts'
import { addClient, addUser, logInTo } from '#test/support/people.ts'
import { grantTokens, redeem } from '#test/support/tokens.ts'

const at = inConsole()
const lines = (title: string) => at.page.locator('li.event', { hasText: title })

testInChromium(
  'EVT-24 a line of the audit log says in words which roles a change gave and took, and who joined a group',
  async () => {
    const { app, url } = at.served
    const hopper = await addUser(app, 'hopper')
    await app.admin('PUT', `/users/${hopper.id}`, { roles: ['admin'] })
    const group = await create(app, '/groups', { name: 'Crew', roles: ['admin'] })
    await app.admin('PUT', `/groups/${group.id}/members/${hopper.id}`)
    await enterConsole(at.page, url, '/console/events')
    const about = (title: string) => lines(title).first().locator('.event-about')
    // The names of the objects are read one by one after the list.
    for (const [title, text] of [
      ['User changed', 'hopper · Roles added (admin) · Roles removed (user) · gatehouse-admin'],
      ['Group changed', 'Crew · Member added (hopper) · Roles added (admin) · gatehouse-admin'],
    ] as const)
      await about(title).getByText(text, { exact: true }).waitFor()
    await lines('Group changed').getByRole('button').click()
    const member = lines('Group changed').locator('.facts div', { hasText: 'Member added' })
    await member.getByRole('link', { name: 'hopper' }).waitFor()
  },
  120_000,
)

testInChromium(
  'a line of the audit log shows a long address in full, and the recipient of an invitation; ending one’s own session is no warning',
  async () => {
    const { app, url } = at.served
    const email = 'priscilla.montgomery-featherstone@mail.northwind.example.com'
    await addUser(app, 'priscilla', { email, roles: ['admin'] })
    await create(app, '/invitations', { delivery: 'link', email: 'new@example.com' })
    const client = await addClient(app, 'desk')
    const hopper = await addUser(app, 'hopper')
    await grantTokens(app, client, hopper)
    await app.admin('DELETE', `/users/${hopper.id}/sessions`)
    const browser = openBrowser(app)
    const { code = '' } = await logInTo(browser, 'desk', 'alan')
    const { id_token } = (await redeem(app, client, code)).body
    await browser.get(`/oauth/logout?id_token_hint=${id_token}`)
    await enterConsole(at.page, url, '/console/events', 'priscilla')
    const invited = lines('Invitation created').locator('.event-about')
    await invited.getByText('new@example.com').waitFor()
    const { scrollWidth, clientWidth } = await lines('Signed in')
      .first()
      .locator('.event-about')
      .evaluate(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }))
    expect(scrollWidth).toBeLessThanOrEqual(clientWidth)
    const dot = (nth: number) => lines('Session revoked').nth(nth).locator('.dot').getAttribute('class')
    await lines('Session revoked').nth(1).waitFor()
    expect([await dot(0), await dot(1)]).toEqual(['dot ', 'dot bad'])
  },
  120_000,
)

testInChromium(
  'CON-12 a filter of the audit log that is not an address yet is refused by name',
  async () => {
    await enterConsole(at.page, at.served.url, '/console/events')
    const address = at.page.getByLabel('IP address')
    await address.fill('127.0')
    await at.page.getByText('ip_address: An IPv4 or IPv6 address.').waitFor()
    await address.fill('192.0.2.77')
    await at.page.getByText('No event matches these filters').waitFor()
  },
  120_000,
)
