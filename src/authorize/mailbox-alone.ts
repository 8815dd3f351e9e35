import type { Context } from '#src/context.ts'
import { findUser } from '#src/directory/users/store.ts'
import { listWaysIn, type WayIn } from '#src/directory/users/ways-in-store.ts'
import { levelOf } from '#src/protocol/oidc/acr.ts'
import type { Next } from './due-step.ts'
import type { BrowserLogin, StepUser } from './eligible-logins.ts'
import type { Flow } from './flow.ts'
import { isFirstFactor } from './remembered.ts'

/** Returns the ways in which the user of a login can sign in. Returns no ways when the user was deleted. */
export const waysInOf = ({ store }: Context, { organization }: Flow, login: StepUser): Promise<WayIn[]> =>
  store.read(async q => {
    const user = await findUser(q, organization.id, login.user_id)
    return user ? listWaysIn(q, user) : []
  })

/**
 * True when three things are true: the user has to add a factor, only a code by mail has proven the user, and
 * the user has another way to sign in. The user must prove that way first, because with the mailbox alone a
 * thief could add a factor and keep the owner out.
 */
const isMailboxAlone = async (context: Context, flow: Flow, login: BrowserLogin): Promise<boolean> => {
  const { user_id, acr, enrol_due } = login
  if (!enrol_due || levelOf(acr) > 1 || isFirstFactor(login) || flow.pending?.recovered_by === user_id)
    return false
  return (await waysInOf(context, flow, login)).length > 0
}

/**
 * Returns the login of the due step if {@link isMailboxAlone} is true for this login. The user confirms who
 * they are before they choose a new password. The new password is stored only when the factor is stored, so a
 * later confirmation would still ask for the old password.
 */
export const provenByMailbox = async (
  context: Context,
  flow: Flow,
  next: Next,
): Promise<BrowserLogin | undefined> => {
  const { step } = next
  const login = step === 'login' || step === 'change_password' || step === 'enrol' ? next.login : undefined
  return login && (await isMailboxAlone(context, flow, login)) ? login : undefined
}
