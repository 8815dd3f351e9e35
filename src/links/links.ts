import type { Core } from '#src/context.ts'
import type { UserChangedBy } from '#src/directory/users/change.ts'
import { insertLink, type Link, trimSignInLinks } from '#src/directory/users/link-store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { conflict } from '#src/lib/app-error.ts'
import { DAY } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { LINK_LIFETIME } from '#src/mail/outbox.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Lifetime of a verification link. It is longer than the `LINK_LIFETIME` of other links, because people do
 * not always read mail soon, and because a verification link allows no login.
 */
const VERIFY_FOR = DAY

/** Path of the page of each kind of link. */
export const paths = {
  set_up: '/account/set-up',
  sign_in: '/account/sign-in',
  reset_password: '/account/reset-password',
  verify_email: '/account/verify-email',
} as const

const createLink = async (
  { config, store, clock }: Core,
  link: Pick<Link, 'kind' | 'user_id' | 'organization_id'> & Partial<Pick<Link, 'email' | 'permissions'>>,
  tx?: Transaction,
): Promise<string> => {
  const token = newSecret()
  const now = clock.now()
  const write = (own: Transaction) =>
    insertLink(own, {
      email: null,
      permissions: null,
      ...link,
      link_hash: hashSecret(token),
      created_at: now,
      expires_at: now + (link.kind === 'verify_email' ? VERIFY_FOR : LINK_LIFETIME),
    })
  await (tx ? write(tx) : store.write(write))
  return `${config.url}${paths[link.kind]}?token=${token}`
}

/**
 * Creates the link with which the first administrator is created. The link is single-use and valid for 30
 * minutes.
 */
export const createSetUpLink = (context: Core): Promise<string> =>
  createLink(context, { kind: 'set_up', user_id: null, organization_id: DEFAULT_ORGANIZATION })

/**
 * Maximum number of unused sign-in links of a user. The write that ends the user's sessions deletes the
 * links, and 10,000 of them would hold it for 56 ms. When there are too many, the oldest link is deleted. The
 * new link is not refused, because a person waits for it.
 */
const MAX_LINKS = 20

type Holder = Pick<UserRow, 'id' | 'organization_id'>

/**
 * Creates the link with which a locked-out user chooses a new password, or a passkey if the user has no
 * second factor. The link is single-use and valid for 30 minutes. Its holder can sign in as the user, so an
 * event records who created the link.
 *
 * @throws AppError `conflict` for a disabled user
 */
export const createSignInLink = async (
  context: Core,
  tx: Transaction,
  user: Holder & Pick<UserRow, 'enabled'>,
  { caller, ...by }: UserChangedBy,
): Promise<string> => {
  // A disabled user could not sign in with the link.
  if (!user.enabled) throw conflict('The user is disabled.')
  const { id: user_id, organization_id } = user
  await recordUser(context, tx, by, 'user.updated', user, { fields: ['sign_in_link'] })
  const permissions = caller ? [...caller.permissions] : null
  await trimSignInLinks(tx, user_id, MAX_LINKS - 1)
  return createLink(context, { kind: 'sign_in', user_id, organization_id, permissions }, tx)
}

/** Creates the link of a reset mail, with which the user chooses a new password. */
export const createResetLink = (
  context: Core,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
): Promise<string> => createLink(context, { kind: 'reset_password', user_id, organization_id }, tx)

/**
 * Creates the link that verifies an e-mail address. The link is single-use and valid for a day. It verifies
 * only this address, because the user may have another address when the link is opened.
 */
export const createVerifyLink = (
  context: Core,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
  email: string,
): Promise<string> => createLink(context, { kind: 'verify_email', user_id, organization_id, email }, tx)
