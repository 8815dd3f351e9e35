import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import type { Call } from '#src/http/call.ts'
import { type AccountFrame, pageUserOf } from '#src/pages/data.ts'
import { accountToken, ownPath, type Viewer } from './viewer.ts'

/** Returns the data of the frame that all account pages share. */
export const frameOf = (context: Context, call: Call, viewer: Viewer): AccountFrame => ({
  brand: brandOf(context, viewer.organization),
  request_id: call.request_id,
  user: pageUserOf(viewer.user),
  csrf_token: accountToken(context, viewer),
  logout_action: ownPath(call, '/account/logout'),
  organization_query: ownPath(call, ''),
  may_change: viewer.permissions.has('profile:update'),
})

/**
 * Returns the notice named in the URL if it is one of `names`. Any other text is ignored, so no link can put
 * words on the page.
 */
export const noticeOf = <Name extends string>(
  { request }: Call,
  names: readonly Name[],
): Name | undefined => {
  const named = new URL(request.url).searchParams.get('notice')
  return names.find(name => name === named)
}
