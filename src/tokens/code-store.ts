import { and, eq, isNull, ne, sql } from 'drizzle-orm'
import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { LoginId, OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret } from '#src/lib/secrets.ts'
import { prepared, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Long enough for a redirect and one call of the client; a code that leaks later has expired. */
const LIFETIME = 60 * SECOND

/** The values of a new authorization code. Times are milliseconds. */
export interface NewCode {
  client_id: string
  user_id: UserId
  organization_id: OrganizationId
  login_id: LoginId
  redirect_uri: string
  /** Space-separated. */
  scope: string
  nonce: string | undefined
  code_challenge: string
  /** Milliseconds. */
  auth_time: number
  acr: string
  amr: string[]
  client_info: ClientInfo
}

const placeholder = sql.placeholder

const insertCode = prepared((q, { authorization_codes }) =>
  q.insert(authorization_codes).values({
    code_hash: placeholder('code_hash'),
    client_id: placeholder('client_id'),
    user_id: placeholder('user_id'),
    organization_id: placeholder('organization_id'),
    login_id: placeholder('login_id'),
    redirect_uri: placeholder('redirect_uri'),
    scope: placeholder('scope'),
    nonce: placeholder('nonce'),
    code_challenge: placeholder('code_challenge'),
    auth_time: placeholder('auth_time'),
    acr: placeholder('acr'),
    amr: placeholder('amr'),
    ip_address: placeholder('ip_address'),
    user_agent: placeholder('user_agent'),
    created_at: placeholder('created_at'),
    expires_at: placeholder('expires_at'),
  }),
)

/**
 * Issues an authorization code. It is valid for one minute and one use, while the login that it came from
 * lasts.
 */
export const issueCode = async (
  context: Core,
  tx: Transaction,
  { client_info, nonce = '', ...code }: NewCode,
): Promise<Secret> => {
  const secret = newSecret()
  const now = context.clock.now()
  const row = {
    ...code,
    nonce,
    code_hash: hashSecret(secret),
    ip_address: client_info.ip_address,
    user_agent: client_info.user_agent,
    created_at: now,
    expires_at: now + LIFETIME,
  }
  await tx.later(insertCode(tx, row))
  return secret
}

const consume = prepared((q, { authorization_codes }) =>
  q
    .update(authorization_codes)
    .set({
      consumed_at: sql`${placeholder('now')}`,
      session_id: sql`${placeholder('session_id')}`,
    })
    .where(
      and(
        eq(authorization_codes.code_hash, placeholder('code_hash')),
        eq(authorization_codes.client_id, placeholder('client_id')),
        isNull(authorization_codes.consumed_at),
      ),
    )
    .returning(),
)

/** A stored authorization code. */
export type CodeRow = Tables['authorization_codes']['$inferSelect']

/**
 * Consumes a code for the client that it was issued to, and stores the id of the session that it starts.
 * Returns undefined for an unknown or used code. The code stays consumed when the rest of the request is
 * refused.
 */
export const consumeCode = async (
  tx: Transaction,
  use: { code: string; client_id: string; session_id: SessionId; now: number },
): Promise<CodeRow | undefined> => {
  const { code, ...rest } = use
  const [row] = await consume(tx, { ...rest, code_hash: hashSecret(code) })
  return row
}

/** Returns the session id stored when this client's code was consumed; the session may never have started. */
export const findUsedCode = async (
  tx: Transaction,
  { code, client_id }: { code: string; client_id: string },
): Promise<SessionId | undefined> => {
  const { authorization_codes } = tx.tables
  const [row] = await tx
    .select({ session_id: authorization_codes.session_id })
    .from(authorization_codes)
    .where(
      and(eq(authorization_codes.code_hash, hashSecret(code)), eq(authorization_codes.client_id, client_id)),
    )
  return row?.session_id ?? undefined
}

/**
 * Deletes the user's unredeemed codes, limited by the filters that are present; codes of `except_login_id`
 * stay.
 */
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
  const { authorization_codes: codes } = tx.tables
  await tx
    .delete(codes)
    .where(
      and(
        eq(codes.user_id, user_id),
        client_id === undefined ? undefined : eq(codes.client_id, client_id),
        organization_id && eq(codes.organization_id, organization_id),
        except_login_id && ne(codes.login_id, except_login_id),
        isNull(codes.consumed_at),
      ),
    )
}
