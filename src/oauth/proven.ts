import type { Context } from '#src/context.ts'
import { withCookies } from '#src/http/cookies.ts'
import { errorPage, PageError } from '#src/http/page-boundary.ts'
import type { UserId } from '#src/lib/ids.ts'
import { logIn } from '#src/sign-in/log-in.ts'
import type { Transaction } from '#src/storage/store.ts'
import { advance } from './advance.ts'
import type { StoredFlow, Visitor } from './flow.ts'
import { updatePending } from './store.ts'

/** Somebody has proven who they are within a flow, by whatever means. */
interface Proven {
  user: { id: UserId }
  acr: string
  amr: string[]
  /** What else belongs into the same write. */
  first?: (tx: Transaction) => Promise<void>
}

/** Starts the login, settles the flow on it and goes on. The new cookie is sent even if what follows fails: the old one is dead. */
export const proceedAs = async (
  context: Context,
  { call, login_hash }: Visitor,
  flow: StoredFlow,
  { first, ...proven }: Proven,
): Promise<Response> => {
  const { organization, pending } = flow
  const login = await context.store.write(async tx => {
    await first?.(tx)
    const started = await logIn(context, tx, { ...proven, organization, origin: call, login_hash })
    const settled = { login_id: started.login_id, selected: false }
    if (!(await updatePending(tx, pending.request_hash, settled))) throw new PageError('expired', 400)
    return started
  })
  const visitor = { call, login_hash: login.login_hash }
  const settled = { ...flow, pending: { ...pending, login_id: login.login_id, selected: false } }
  const answer = await advance(context, visitor, settled, 'post').catch(error =>
    errorPage(context, call, error),
  )
  return withCookies(answer, [login.cookie])
}
