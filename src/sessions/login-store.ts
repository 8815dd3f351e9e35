import { and, desc, eq, gt, gte, inArray, isNull, ne, sql } from 'drizzle-orm'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import { hashSecret, type SecretHash } from '#src/lib/secrets.ts'
import type { FactorType } from '#src/protocol/oidc/acr.ts'
import { keepLatest } from '#src/storage/batches.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { type AuthorizationCode, countRevocations, isRevoked } from '#src/tokens/codes.ts'

type LoginRow = Tables['logins']['$inferSelect']
type NewLoginRow = Omit<LoginRow, 'codes_revoked'>

const placeholder = sql.placeholder

const columnsOf = ({ logins, users, organizations }: Tables) => ({
  id: logins.id,
  browser_hash: logins.browser_hash,
  user_id: logins.user_id,
  organization_id: logins.organization_id,
  auth_time: logins.auth_time,
  signed_in_at: logins.signed_in_at,
  acr: logins.acr,
  amr: logins.amr,
  ip_address: logins.ip_address,
  user_agent: logins.user_agent,
  codes_revoked: logins.codes_revoked,
  created_at: logins.created_at,
  expires_at: logins.expires_at,
  username: users.username,
  email: users.email,
  email_verified: users.email_verified,
  first_name: users.first_name,
  last_name: users.last_name,
  enabled: users.enabled,
  password_temporary: users.password_temporary,
  password_changed_at: users.password_changed_at,
  passkey_declined_at: users.passkey_declined_at,
  organization_slug: sql<string>`${organizations.slug}`.as('organization_slug'),
})

const isCurrent = ({ logins }: Tables) =>
  and(eq(logins.browser_hash, placeholder('browser_hash')), gt(logins.expires_at, placeholder('now')))

/**
 * The latest login is first, because an authorization request uses the first (protocol/oauth/next-step.ts).
 */
const latestFirst = ({ logins }: Tables) => [desc(logins.signed_in_at), desc(logins.id)]

const selectLogins = prepared((q, tables) =>
  q
    .select(columnsOf(tables))
    .from(tables.logins)
    .innerJoin(tables.users, eq(tables.users.id, tables.logins.user_id))
    .innerJoin(tables.organizations, eq(tables.organizations.id, tables.logins.organization_id))
    .where(isCurrent(tables))
    .orderBy(...latestFirst(tables)),
)

/** A login, with the columns of its user and organization that pages and the next step need. */
export type Login = Awaited<ReturnType<typeof findLogins>>[number]

/** Returns the unexpired logins of a browser, the latest first. Includes logins of disabled users. */
export const findLogins = (q: Queries, browser_hash: SecretHash, now: number) =>
  selectLogins(q, { browser_hash, now })

const selectLoginsAtClient = prepared((q, tables) => {
  const { logins, users, organizations, consents, factors } = tables
  return q
    .select({ ...columnsOf(tables), scopes: consents.scopes, type: factors.type })
    .from(logins)
    .innerJoin(users, eq(users.id, logins.user_id))
    .innerJoin(organizations, eq(organizations.id, logins.organization_id))
    .leftJoin(
      consents,
      and(
        eq(consents.user_id, logins.user_id),
        eq(consents.client_id, placeholder('client_id')),
        gte(consents.updated_at, placeholder('since')),
      ),
    )
    .leftJoin(factors, eq(factors.user_id, logins.user_id))
    .where(isCurrent(tables))
    .orderBy(...latestFirst(tables))
})

/** A login with the facts about its user that an authorization request needs. */
export type LoginAtClient = Login & {
  /** Types of the user's factors, one entry for each factor. */
  factors: FactorType[]
  /** Scopes that the user has granted to the client. Undefined without a consent. */
  consented: readonly string[] | undefined
}

/**
 * Returns the unexpired logins of a browser (see `findLogins`) with the factors of each user and the user's
 * consent for `client_id`. A consent that was given before `since` (ms) is omitted. One statement reads
 * logins, factors and consents, because on PostgreSQL each statement is a round trip.
 */
export const findLoginsAtClient = async (
  q: Queries,
  key: { browser_hash: SecretHash; now: number; client_id: string; since: number },
): Promise<LoginAtClient[]> => {
  const found = new Map<LoginId, LoginAtClient>()
  for (const { scopes, type, ...login } of await selectLoginsAtClient(q, key)) {
    const known = found.get(login.id) ?? { ...login, factors: [], consented: scopes ?? undefined }
    if (type !== null) known.factors.push(type)
    found.set(login.id, known)
  }
  return [...found.values()]
}

const selectSubject = prepared((q, { logins, users, organizations, authorization_codes }) =>
  q
    .select({
      id: users.id,
      organization_id: users.organization_id,
      username: users.username,
      email: users.email,
      email_verified: users.email_verified,
      first_name: users.first_name,
      last_name: users.last_name,
      active_at: users.active_at,
      settings: organizations.settings,
      codes_revoked: logins.codes_revoked,
      ip_address: logins.ip_address,
      user_agent: logins.user_agent,
      burnt_at: authorization_codes.expires_at,
    })
    .from(logins)
    .innerJoin(users, eq(users.id, logins.user_id))
    .innerJoin(organizations, eq(organizations.id, users.organization_id))
    .leftJoin(
      authorization_codes,
      and(eq(authorization_codes.code_hash, placeholder('code_hash')), isNull(authorization_codes.sealed)),
    )
    .where(and(eq(logins.id, placeholder('login_id')), eq(users.enabled, true))),
)

/**
 * Returns the enabled user of a code's login, with the organization's settings. Returns undefined when the
 * login has ended, the user is disabled or the code is revoked. Each of these can happen in the 60 seconds
 * for which a code is valid. Returns `burnt` when `burnCode` has made the code unusable. One statement reads
 * the user and the code, which saves a query at each exchange of a code.
 *
 * @param sent the code as the client sent it
 */
export const findSubject = (q: Queries, code: AuthorizationCode, sent: string) =>
  selectSubject(q, { login_id: code.login_id, code_hash: hashSecret(sent) }).then(([subject]) => {
    if (!subject || isRevoked(code, subject.codes_revoked)) return undefined
    return subject.burnt_at === null ? subject : 'burnt'
  })

/** Marks logins as recorded by an event in the audit log. */
export const setRecorded = async (tx: Transaction, ids: LoginId[], recorded_at: number): Promise<void> => {
  const { logins } = tx.tables
  await tx.update(logins).set({ recorded_at }).where(inArray(logins.id, ids))
}

/** Returns the unexpired logins of a user in all browsers, the latest first. */
export const listUserLogins = (q: Queries, user_id: UserId, now: number): Promise<LoginRow[]> => {
  const { logins } = q.tables
  return q
    .select()
    .from(logins)
    .where(and(eq(logins.user_id, user_id), gt(logins.expires_at, now)))
    .orderBy(desc(logins.signed_in_at), desc(logins.id))
}

/**
 * Maximum number of logins of a user. The latest logins are kept. A program that keeps no cookies adds a
 * login at each sign-in, and pages read all logins of a user.
 */
const MAX_LOGINS = 500

/** Stores a new login and keeps the latest `MAX_LOGINS` of the user. Sessions of removed logins continue. */
export const insertLogin = async (tx: Transaction, login: NewLoginRow): Promise<void> => {
  const { logins } = tx.tables
  await tx.insert(logins).values(login)
  await keepLatest(tx, logins, {
    key: logins.id,
    order: logins.signed_in_at,
    where: eq(logins.user_id, login.user_id),
    max: MAX_LOGINS,
  })
}

/** Renews the user's login in this browser and returns its id. Returns undefined without such a login. */
export const renewLogin = async (
  tx: Transaction,
  { id: _, created_at: __, ...login }: NewLoginRow,
): Promise<LoginId | undefined> => {
  const { logins } = tx.tables
  const [renewed] = await tx
    .update(logins)
    .set(login)
    .where(and(eq(logins.browser_hash, login.browser_hash), eq(logins.user_id, login.user_id)))
    .returning({ id: logins.id })
  return renewed?.id
}

/** Sets `acr` and `amr` of a login. Returns false when the browser no longer has the login. */
export const raiseLogin = async (
  tx: Transaction,
  {
    login_id,
    browser_hash,
    ...proven
  }: Pick<LoginRow, 'browser_hash' | 'acr' | 'amr'> & { login_id: LoginId },
): Promise<boolean> => {
  const { logins } = tx.tables
  const rows = await tx
    .update(logins)
    .set(proven)
    .where(and(eq(logins.id, login_id), eq(logins.browser_hash, browser_hash)))
    .returning({ id: logins.id })
  return rows.length > 0
}

/** Moves the logins of a browser to its new cookie. */
export const moveLogins = async (
  tx: Transaction,
  from_hash: SecretHash,
  to_hash: SecretHash,
): Promise<void> => {
  const { logins } = tx.tables
  await tx.update(logins).set({ browser_hash: to_hash }).where(eq(logins.browser_hash, from_hash))
}

/**
 * Ends logins and returns the ids of the logins that had not ended before. Sessions that came from the logins
 * continue.
 */
export const endLogins = async (tx: Transaction, login_ids: LoginId[]): Promise<LoginId[]> => {
  const { logins } = tx.tables
  const ended = await tx.delete(logins).where(inArray(logins.id, login_ids)).returning({ id: logins.id })
  return ended.map(({ id }) => id)
}

/**
 * Ends the user's logins except `except_login_id`. If `organization_id` is given, ends only the logins in
 * this organization. Returns the number of ended logins.
 */
export const endUserLogins = async (
  tx: Transaction,
  user_id: UserId,
  organization_id?: OrganizationId,
  except_login_id?: LoginId,
): Promise<number> => {
  const { logins } = tx.tables
  const ended = await tx
    .delete(logins)
    .where(
      and(
        eq(logins.user_id, user_id),
        organization_id && eq(logins.organization_id, organization_id),
        except_login_id && ne(logins.id, except_login_id),
      ),
    )
    .returning({ id: logins.id })
  return ended.length
}

/** Revokes the user's unredeemed codes that match the filters. Codes of `except_login_id` stay valid. */
export const revokeCodes = async (
  tx: Transaction,
  {
    user_id,
    client_id,
    organization_id,
    except_login_id,
  }: {
    user_id: UserId
    client_id?: string | undefined
    organization_id?: OrganizationId | undefined
    except_login_id?: LoginId | undefined
  },
): Promise<void> => {
  const { logins } = tx.tables
  const rows = await tx
    .select({ id: logins.id, revoked: logins.codes_revoked })
    .from(logins)
    .where(
      and(
        eq(logins.user_id, user_id),
        organization_id && eq(logins.organization_id, organization_id),
        except_login_id && ne(logins.id, except_login_id),
      ),
    )
  for (const { id, revoked } of rows) {
    const next = countRevocations(revoked) + 1
    const codes_revoked = client_id === undefined ? { '': next } : { ...revoked, [client_id]: next }
    await tx.update(logins).set({ codes_revoked }).where(eq(logins.id, id))
  }
}
