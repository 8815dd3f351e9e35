import type { Context } from '#src/context.ts'
import { findUser } from '#src/directory/users/store.ts'
import { listWaysIn } from '#src/directory/users/ways-in-store.ts'
import { levelOf } from '#src/protocol/oidc/acr.ts'
import { type BrowserLogin, isFirstFactor } from './eligible-logins.ts'
import { chosenOf, type Flow } from './flow.ts'

/**
 * True when a factor is due and only a code by mail has proven the user, who has another way to sign in. The
 * user must prove that way first: with the mailbox alone a thief could add a factor and keep the owner out.
 */
export const isMailboxAlone = async (
  { store }: Context,
  { organization, pending }: Flow,
  login: BrowserLogin,
): Promise<boolean> => {
  const { user_id, acr, enrol_due } = login
  if (!enrol_due || levelOf(acr) > 1 || isFirstFactor(login) || pending?.recovered_by === user_id)
    return false
  return store.read(async q => {
    const user = await findUser(q, organization.id, user_id)
    return user !== undefined && (await listWaysIn(q, user)).length > 0
  })
}

/** Returns the login that the flow goes on with, if {@link isMailboxAlone} is true for it. */
export const provenByMailbox = async (
  context: Context,
  flow: Flow,
  logins: readonly BrowserLogin[],
): Promise<BrowserLogin | undefined> => {
  const { pending, request } = flow
  const chosen = logins.find(({ id }) => id === chosenOf(flow))
  const login = chosen ?? (pending?.selected || request.prompts.includes('login') ? undefined : logins[0])
  return login && (await isMailboxAlone(context, flow, login)) ? login : undefined
}
