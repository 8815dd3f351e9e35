import { listGrants, removeGrant } from '#src/authorize/consent-store.ts'
import type { Context } from '#src/context.ts'
import { admitting } from '#src/directory/admission.ts'
import { showScopes } from '#src/directory/apis/texts.ts'
import { listStartable } from '#src/directory/clients/startable-store.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { iso } from '#src/lib/text.ts'
import { render } from '#src/pages/render.ts'
import { listUserSessions } from '#src/sessions/list-store.ts'
import { revokeMost, revokeSessions } from '#src/sessions/service.ts'
import { frameOf, noticeOf } from './frame.ts'
import { clientLooks } from './store.ts'
import { openForm, ownPath, permit, requireViewer } from './viewer.ts'

const PAGE = '/account/applications'

/**
 * Lists three kinds of applications: those that the user may start, those to which the user has consented,
 * and those at which the user has a session.
 */
export const getApplications =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:read')
    const { user } = viewer
    const now = context.clock.now()
    const [grants, sessions, startable] = await context.store.read(async q =>
      Promise.all([
        Promise.all(
          (await listGrants(q, user.id)).map(async grant => ({
            ...grant,
            scopes: await showScopes(q, grant.scopes, call.locale),
          })),
        ),
        listUserSessions(q, user.id, now),
        listStartable(q, user.organization_id).then(clients => admitting(q, clients, user.id)),
      ]),
    )
    const granted = new Set(grants.map(({ client_id }) => client_id))
    const others = new Map(
      sessions
        .filter(({ client_id }) => !granted.has(client_id))
        .map(({ client_id, client_name }) => [client_id, { client_id, client_name, scopes: [] }]),
    )
    const connected = [
      ...grants.map(({ created_at, ...grant }) => ({ ...grant, created_at: iso(created_at) })),
      ...others.values(),
    ]
    const looks = await context.store.read(q =>
      clientLooks(
        q,
        connected.map(({ client_id }) => client_id),
      ),
    )
    const notice = noticeOf(call, ['disconnected'])
    return render(
      'account-applications',
      {
        ...frameOf(context, call, viewer),
        startable: startable.map(client => ({
          client_id: client.client_id,
          client_name: client.name || client.client_id,
          url: startOf(context, client),
          ...logoOf(client),
        })),
        applications: connected.map(each => ({ ...each, ...logoOf(looks.get(each.client_id)) })),
        now,
        disconnect_action: ownPath(call, '/account/applications/disconnect'),
        ...(notice && { notice }),
      },
      { locale: call.locale },
    )
  }

const logoOf = ({ logo }: { logo?: string | null | undefined } = {}): { logo?: string } =>
  logo ? { logo } : {}

/**
 * Returns the address at which a person starts the application. This is the client's login address with `iss`
 * (https://openid.net/specs/openid-connect-core-1_0.html#ThirdPartyInitiatedLogin). For a client without a
 * login address it is the home page.
 */
const startOf = (
  { config }: Context,
  { initiate_login_uri, client_uri }: Pick<Client, 'initiate_login_uri' | 'client_uri'>,
): string => {
  if (!initiate_login_uri) return client_uri ?? ''
  const url = new URL(initiate_login_uri)
  url.searchParams.set('iss', config.url)
  return url.href
}

/**
 * Withdraws the consent and ends the user's sessions at the application. If the sessions continued, the
 * application would keep its access, because a refresh does not check the consent. The next login at the
 * application asks for consent if the application needs consent.
 */
export const postDisconnect =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer, form } = await openForm(context, call)
    permit(viewer, 'profile:update')
    const { id, email } = viewer.user
    const client_id = form.get('client_id') ?? ''
    const by = { actor: { id, email }, client_info: call, reason: 'consent_withdrawn' }
    await revokeMost(context, { user_id: id, client_id }, by)
    await context.store.write(async tx => {
      await removeGrant(tx, id, client_id)
      await revokeSessions(context, tx, { user_id: id, client_id }, by)
    })
    return seeOther(ownPath(call, `${PAGE}?notice=disconnected`))
  }
