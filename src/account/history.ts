import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { openCursor, sealCursor } from '#src/lib/cursor.ts'
import { CONSOLE_CLIENT, CONSOLE_NAME } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import type { AccountHistoryPage, SignInMethod } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { frameOf } from './frame.ts'
import { clientLooks, listSignIns } from './store.ts'
import { ownPath, permit, requireViewer } from './viewer.ts'

const PAGE = '/account/history'
/** Maximum number of entries on one page. The admin API has the same default page size. */
const SHOWN = 20

/**
 * Methods as the page names them, by `amr` value (https://www.rfc-editor.org/rfc/rfc8176#section-2). The RFC
 * does not define `fed`, which means a login through a provider.
 */
const methods: Record<string, SignInMethod> = {
  pwd: 'password',
  fed: 'provider',
  hwk: 'passkey',
  swk: 'passkey',
  otp: 'code',
}

const methodsOf = (amr: unknown): SignInMethod[] =>
  Array.isArray(amr) ? [...new Set(amr.flatMap(name => methods[name] ?? []))] : []

/** Lists the sign-ins of the user and the failed attempts at the account, latest first. */
export const getHistory =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, PAGE)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:read')
    const { id } = viewer.user
    const key = context.master.derive('cursor')
    const binding = JSON.stringify([PAGE, id])
    const cursor = new URL(call.request.url).searchParams.get('cursor')
    const after = cursor === null ? undefined : openCursor(key, cursor, binding)
    const [locate, { rows, next, names }] = await Promise.all([
      context.places.open(),
      context.store.read(async q => {
        const page = await listSignIns(q, id, after, SHOWN)
        return {
          ...page,
          names: await clientLooks(
            q,
            page.rows.flatMap(({ metadata }) => clientOf(metadata)),
          ),
        }
      }),
    ])
    const entries = rows.map(({ type, timestamp, ip_address, user_agent, metadata }) => {
      const [client_id] = clientOf(metadata)
      return {
        failed: type === 'user.login_failed',
        is_unfinished: type === 'user.first_factor_proven',
        at: iso(timestamp),
        ip_address,
        user_agent,
        location: locate(ip_address, call.locale),
        methods: methodsOf(metadata.amr),
        ...(client_id && { client_name: names.get(client_id)?.name ?? nameless(client_id) }),
      }
    })
    const data: AccountHistoryPage = {
      ...frameOf(context, call, viewer),
      entries,
      now: context.clock.now(),
      ...(next && { next_url: ownPath(call, `${PAGE}?cursor=${sealCursor(key, next, binding)}`) }),
    }
    return render('account-history', data, { locale: call.locale })
  }

const clientOf = ({ client_id }: Record<string, unknown>): string[] =>
  typeof client_id === 'string' && client_id !== '' ? [client_id] : []

/** Returns the name of a client that has no row: the name of the console, or the id of a deleted client. */
const nameless = (client_id: string): string => (client_id === CONSOLE_CLIENT ? CONSOLE_NAME : client_id)
