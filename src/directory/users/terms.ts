import { z } from 'zod'
import type { Core } from '#src/context.ts'
import { time } from '#src/directory/fields.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { example } from '#src/http/example.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { UserId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { recordUser } from './record.ts'
import type { UserRow } from './store.ts'
import { hasAccepted, insertAcceptance, listAcceptances } from './terms-store.ts'

/** The answer that lists the versions of the terms that a user has accepted. */
export const TermsList = z
  .object({
    data: z
      .array(
        z.object({
          version: z.string().describe('Version of the terms.'),
          accepted_at: time.describe('Time of the acceptance (ISO 8601, UTC).'),
        }),
      )
      .describe('The accepted versions, the latest first, at most 100.'),
  })
  .meta({
    id: 'AcceptedTerms',
    description: 'Versions of the terms of use that a user has accepted.',
    example: { data: [{ version: '2026-01', accepted_at: example.time }] },
  })

/** Returns the accepted versions in the form that the admin API and the user's download of data contain. */
export const acceptedTerms = async (
  q: Queries,
  user_id: UserId,
): Promise<z.output<typeof TermsList>['data']> =>
  (await listAcceptances(q, user_id)).map(({ version, accepted_at }) => ({
    version,
    accepted_at: iso(accepted_at),
  }))

/** True when the user has to accept the current version of the organization's terms. */
export const owesTerms = (
  { store }: Pick<Core, 'store'>,
  organization: Pick<Organization, 'settings'>,
  user_id: UserId,
): Promise<boolean> => {
  const { terms } = settingsOf(organization)
  if (terms === undefined) return Promise.resolve(false)
  return store.read(q => hasAccepted(q, { user_id, version: terms.version })).then(isAccepted => !isAccepted)
}

/**
 * True when a form accepts the current version of the terms, or the organization has no terms. The form names
 * the version that its page showed, because the terms may have changed while the page was open.
 */
export const acceptsTerms = (
  organization: Pick<Organization, 'settings'>,
  form: ReadonlyMap<string, string>,
): boolean => {
  const { terms } = settingsOf(organization)
  return !terms || (form.has('accept') && form.get('version') === terms.version)
}

/**
 * Stores that the user has accepted a version, and records the event. Does nothing when the user has already
 * accepted this version.
 */
export const acceptTerms = async (
  context: Core,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'email' | 'organization_id'>,
  version: string,
  client_info: ClientInfo,
): Promise<void> => {
  const { id: user_id, organization_id, email } = user
  const accepted_at = context.clock.now()
  if (!(await insertAcceptance(tx, { user_id, organization_id, version, accepted_at }))) return
  const by = { actor: { id: user_id, email }, client_info }
  await recordUser(context, tx, by, 'user.terms_accepted', user, { version })
}
