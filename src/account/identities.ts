import { accountRequest, browserSessionOf, flowOf, storeFlow } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import {
  type ExternalAccount,
  listAccounts,
  removeAccount,
} from '#src/directory/identity-providers/account-store.ts'
import { entryPath, kindOf } from '#src/directory/identity-providers/buttons.ts'
import { findEnabledProviders, findProvider } from '#src/directory/identity-providers/store.ts'
import type { ShownProvider } from '#src/directory/identity-providers/types.ts'
import { revokeUser } from '#src/directory/users/revocation.ts'
import { findUser } from '#src/directory/users/store.ts'
import { isOnlyWayIn, listWaysIn, type WayIn } from '#src/directory/users/ways-in-store.ts'
import { linkToken } from '#src/federation/start-login.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import type { AccountPage } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { revokeMost } from '#src/sessions/service.ts'
import { recordLink } from '#src/sign-in/external-accounts.ts'
import type { Queries } from '#src/storage/store.ts'
import { openFreshForm, ownPath, permit, type Viewer } from './viewer.ts'

/** False when this account is the user's only way in (`isOnlyWayIn`). */
const mayUnlink = (ways: readonly WayIn[], { provider_id, subject }: ExternalAccount): boolean =>
  !isOnlyWayIn(
    ways,
    way => way.by === 'provider' && way.provider_id === provider_id && way.subject === subject,
  )

/**
 * Lists linked accounts and available providers. Returns undefined when the user may not change the profile,
 * or when there is nothing to list.
 */
export const identitiesOf = async (
  context: Context,
  call: Call,
  viewer: Viewer,
): Promise<AccountPage['identities']> => {
  const { user, organization, permissions } = viewer
  const { linked, ways } = await context.store.read(async q => ({
    linked: await listAccounts(q, user.id),
    ways: await listWaysIn(q, user),
  }))
  const enabled = await findEnabledProviders(context.store, organization.id)
  if (!permissions.has('profile:update') || linked.length + enabled.length === 0) return undefined
  const shown = (provider: ShownProvider) => ({
    provider: provider.alias,
    name: provider.name,
    kind: kindOf(provider),
  })
  return {
    link_action: ownPath(call, '/account/identities/link'),
    unlink_action: ownPath(call, '/account/identities/unlink'),
    linked: linked.map(({ account, provider }) => ({
      ...shown(provider),
      subject: account.subject,
      label: account.label,
      may_unlink: mayUnlink(ways, account),
    })),
    available: enabled
      .filter(({ id }) => !linked.some(({ account }) => account.provider_id === id))
      .map(shown),
  }
}

/** Redirects the user to the provider. The callback links the account. */
export const postLink =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, {
      page: '/account',
      change: ['account.identities', 'account.identity_link'],
    })
    if (opened instanceof Response) return opened
    const { viewer, form } = opened
    permit(viewer, 'profile:update')
    const provider = await findProvider(context.store, form.get('provider') ?? '')
    const { user, organization } = viewer
    if (!provider?.enabled || provider.organization_id !== organization.id)
      throw new PageError('not_found', 404, { retry_url: ownPath(call, '/account') })
    const back = ownPath(call, '/account?notice=account_linked')
    const flow = await flowOf(context, accountRequest(organization.id, { back }))
    const { stored, cookies } = await storeFlow(context, browserSessionOf(context, call), flow)
    const query = new URLSearchParams({ request: stored.handle, link: linkToken(context, stored, user.id) })
    return withCookies(seeOther(`${entryPath(provider)}?${query}`), cookies)
  }

/**
 * Unlinks an account at a provider. Refuses to unlink the user's last way to sign in. Ends all other logins
 * and sessions, because some of them may have begun with the unlinked account.
 */
export const postUnlink =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, {
      page: '/account',
      change: ['account.identities', 'account.identity_unlink'],
    })
    if (opened instanceof Response) return opened
    const { viewer, form } = opened
    permit(viewer, 'profile:update')
    const { user, login } = viewer
    const chosenOf = async (q: Queries) => {
      const linked = await listAccounts(q, user.id)
      const given = linked.find(
        ({ account, provider }) =>
          provider.alias === form.get('provider') && account.subject === form.get('subject'),
      )
      const current = await findUser(q, user.organization_id, user.id)
      const ways = current ? await listWaysIn(q, current) : []
      if (!given || !mayUnlink(ways, given.account)) throw new PageError('bad_request', 400)
      return given
    }
    const others = { user_id: user.id, except_login_id: login.id }
    const actor = { id: user.id, email: user.email }
    const by = { actor, client_info: call, reason: 'account_unlinked' }
    await context.store.read(chosenOf)
    await revokeMost(context, others, by)
    await context.store.write(async tx => {
      const { account, provider } = await chosenOf(tx)
      await removeAccount(tx, account)
      await recordLink(context, tx, user, { unlinked: provider.id }, call)
      await revokeUser(context, tx, others, by)
    })
    return seeOther(ownPath(call, '/account?notice=account_unlinked'))
  }
