import type { Context } from '#src/context.ts'
import { findUser } from '#src/directory/users/store.ts'
import { listWaysIn, type WayIn } from '#src/directory/users/ways-in-store.ts'
import { levelOf } from '#src/protocol/oidc/acr.ts'
import { type BrowserLogin, isFirstFactor, type StepUser } from './eligible-logins.ts'
import { chosenOf, type Flow } from './flow.ts'

/** Returns the ways in which the user of a login can sign in; none when the user was deleted. */
export const waysInOf = ({ store }: Context, { organization }: Flow, login: StepUser): Promise<WayIn[]> =>
  store.read(async q => {
    const user = await findUser(q, organization.id, login.user_id)
    return user ? listWaysIn(q, user) : []
  })

/**
 * True when a factor is due and only a code by mail has proven the user, who has another way to sign in. The
 * user must prove that way first: with the mailbox alone a thief could add a factor and keep the owner out.
 */
export const isMailboxAlone = async (context: Context, flow: Flow, login: BrowserLogin): Promise<boolean> => {
  const { user_id, acr, enrol_due } = login
  if (!enrol_due || levelOf(acr) > 1 || isFirstFactor(login) || flow.pending?.recovered_by === user_id)
    return false
  return (await waysInOf(context, flow, login)).length > 0
}

/** Returns the login that the flow goes on with, if {@link isMailboxAlone} is true for it. */
export const provenByMailbox = async (
  context: Context,
  flow: Flow,
  logins: readonly BrowserLogin[],
): Promise<BrowserLogin | undefined> => {
  const { pending, request } = flow
  const chosen = logins.find(({ id }) => id === chosenOf(flow))
  const isAnother = pending?.selected || request.another || request.prompts.includes('login')
  const login = chosen ?? (isAnother ? undefined : logins[0])
  return login && (await isMailboxAlone(context, flow, login)) ? login : undefined
}
