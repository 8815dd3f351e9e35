import { createHmac } from 'node:crypto'
import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Context } from '#src/context.ts'
import type { SessionId } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret } from '#src/lib/secrets.ts'
import { notPurged } from '#src/storage/purges.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'

const placeholder = sql.placeholder

const insertToken = prepared((q, { refresh_tokens }) =>
  q.insert(refresh_tokens).values({
    token_hash: placeholder('token_hash'),
    session_id: placeholder('session_id'),
    created_at: placeholder('created_at'),
    expires_at: placeholder('expires_at'),
  }),
)

interface NewToken {
  session_id: SessionId
  now: number
  expires_at: number
}

const storeToken = async (tx: Transaction, token: Secret, { now, ...row }: NewToken): Promise<Secret> => {
  await insertToken(tx, { ...row, token_hash: hashSecret(token), created_at: now })
  return token
}

/** The first refresh token of a session. */
export const issueRefreshToken = (tx: Transaction, token: NewToken): Promise<Secret> =>
  storeToken(tx, newSecret(), token)

const selectGrant = prepared((q, { refresh_tokens, sessions, users }) =>
  q
    .select({
      session_id: refresh_tokens.session_id,
      used_at: refresh_tokens.used_at,
      client_id: sessions.client_id,
      user_id: sessions.user_id,
      scope: sessions.scope,
      expires_at: sessions.expires_at,
      ends_by: sessions.ends_by,
      ended_at: sessions.ended_at,
      organization_id: users.organization_id,
      username: users.username,
      email: users.email,
      email_verified: users.email_verified,
      first_name: users.first_name,
      last_name: users.last_name,
      enabled: users.enabled,
    })
    .from(refresh_tokens)
    .innerJoin(sessions, eq(sessions.id, refresh_tokens.session_id))
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(
      and(eq(refresh_tokens.token_hash, placeholder('token_hash')), notPurged(q, sessions.organization_id)),
    ),
)

/** What a refresh token stands for: its session and the user. */
export type RefreshGrant = NonNullable<Awaited<ReturnType<typeof findRefreshGrant>>>

/** Whatever its state: used, ended or disabled is for the caller to judge. */
export const findRefreshGrant = async (q: Queries, token: string) => {
  const [grant] = await selectGrant(q, { token_hash: hashSecret(token) })
  return grant
}

const consume = prepared((q, { refresh_tokens }) =>
  q
    .update(refresh_tokens)
    .set({ used_at: sql`${placeholder('now')}` })
    .where(and(eq(refresh_tokens.token_hash, placeholder('token_hash')), isNull(refresh_tokens.used_at)))
    .returning({ session_id: refresh_tokens.session_id }),
)

/** The token's one use; false when it was used before. */
export const consumeRefreshToken = async (tx: Transaction, token: string, now: number): Promise<boolean> => {
  const used = await consume(tx, { token_hash: hashSecret(token), now })
  return used.length > 0
}

/**
 * The token that follows upon this one. It can be computed again when the answer that carried it was lost
 * (`refresh_token_reuse_window`), so that nothing but its hash needs to be stored.
 */
const successorOf = ({ master }: Pick<Context, 'master'>, token: string, session_id: SessionId): Secret =>
  createHmac('sha256', master.derive('refresh'))
    .update(`${session_id}\0${token}`)
    .digest('base64url') as Secret

export const issueSuccessor = (
  context: Pick<Context, 'master'>,
  tx: Transaction,
  token: string,
  row: NewToken,
): Promise<Secret> => storeToken(tx, successorOf(context, token, row.session_id), row)

/** The successor of a used token while nobody has used it: never two generations back. */
export const findUnusedSuccessor = async (
  context: Pick<Context, 'master'>,
  tx: Transaction,
  token: string,
  session_id: SessionId,
): Promise<Secret | undefined> => {
  const successor = successorOf(context, token, session_id)
  const grant = await findRefreshGrant(tx, successor)
  return grant?.used_at === null ? successor : undefined
}
