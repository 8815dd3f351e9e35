import type { Json } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, authorizeUrl, codeRow } from '#test/support/people.ts'
import { addProvider, startFederated, type UpstreamUser } from './upstream.ts'

/**
 * Starts a server with three providers. The e-mail addresses of `trusted` are trusted. The e-mail addresses
 * of `asking` are not trusted. `closed` accepts no new users.
 */
export const startLinking = async (options: Parameters<typeof startFederated>[0] = {}) => {
  const { app, upstream, honest } = await startFederated(options)
  const { client_secret } = await addClient(app, 'app')
  const asking = await addProvider(app, 'asking')
  const trusted = await addProvider(app, 'trusted', { trust_email: true, client_id: 'trusted' })
  await addProvider(app, 'closed', { allow_registration: false, client_id: 'closed' })
  await create(app, '/roles', { name: 'reader', permissions: ['users:read'] })
  let made = 0
  /** Opens a browser with an IP address of its own. */
  const fresh = (): Browser => openBrowser(app, { ip: `198.51.100.${made++ & 255}` })
  const somebody = (): Required<Pick<UpstreamUser, 'sub' | 'email'>> => {
    const sub = `person-${made++}`
    return { sub, email: `${sub}@example.com` }
  }
  const entry = (alias: string): string =>
    authorizeUrl('app').replace('/oauth/authorize', `/oauth/social/${alias}`)
  const usersBy = async (email: string): Promise<Json[]> =>
    (await app.admin('GET', `/users?search=${encodeURIComponent(email)}`)).body.data
  const accounts = () => app.context.store.read(async q => q.select().from(q.tables.external_accounts))
  const accountsOf = async (user_id: string) => (await accounts()).filter(row => row.user_id === user_id)
  /** Returns the id of the user to whom the authorization code in this redirect was issued. */
  const whoIs = async (page: Page): Promise<string> => {
    const { code } = answerOf(page)
    return (await codeRow(app, code)).user_id
  }
  const refusal = async (): Promise<Json[]> =>
    (await app.events()).map(({ type, target_id, metadata }) => [
      type,
      target_id,
      metadata.failure_reason ?? metadata,
    ])
  return {
    app,
    upstream,
    honest,
    client_secret,
    asking,
    trusted,
    fresh,
    somebody,
    entry,
    usersBy,
    accounts,
    accountsOf,
    whoIs,
    refusal,
  }
}
