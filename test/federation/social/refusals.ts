import { expect } from 'bun:test'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addProvider, startFederated } from '../upstream.ts'

/** Starts a server with the provider `up`. Returns a check of the properties that all refusals share. */
export const startRefusals = async () => {
  const { app, upstream, honest } = await startFederated()
  await addProvider(app, 'up')
  let made = 0
  /** Each callback has its own IP address, because refusals are counted by address. */
  const fresh = (): Browser => openBrowser(app, { ip: `198.51.${made >> 8}.${made++ & 255}` })
  const sum = () =>
    app.context.store.read(async q => {
      const { external_accounts, logins, users, sessions } = q.tables
      return [
        (await q.select().from(users)).length,
        (await q.select().from(logins)).length,
        (await q.select().from(external_accounts)).length,
        (await q.select().from(sessions)).length,
      ]
    })
  const withoutId = (page: Page): string =>
    page.html.replaceAll(page.headers.get('x-request-id') ?? '', '').replace(/request=[\w-]+/, 'request=')
  /** Checks the refusal: the common page, a reason in the audit log, and no stored change. */
  const expectRefusal = async (reason: string, walk: () => Promise<Page>, alias = 'up'): Promise<Page> => {
    const before = await sum()
    await app.events()
    const page = await walk()
    expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
    expect(page.html).toContain(page.headers.get('x-request-id') ?? '-')
    expect(page.headers.getSetCookie()).toEqual([])
    const provider = await app.admin('GET', `/identity-providers/${alias}`)
    expect((await app.events()).filter(({ type }) => !/^token/.test(type))).toEqual([
      {
        type: 'user.login_failed',
        actor_id: null,
        target_id: '',
        target_type: 'user',
        organization_id: 'org_default',
        metadata: {
          username_attempted: '',
          failure_reason: reason,
          attempt_count: expect.any(Number),
          identity_provider: provider.body.id,
        },
      },
    ])
    expect(await sum()).toEqual(before)
    return page
  }
  return { app, upstream, honest, fresh, withoutId, expectRefusal }
}
