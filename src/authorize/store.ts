import { and, eq, gt, sql } from 'drizzle-orm'
import { MINUTE } from '#src/lib/duration.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { MessageKey } from '#src/pages/data.ts'
import type { AuthorizeRequest } from '#src/protocol/oauth/authorize-request.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Contents of a request to confirm who the user is. They contain no secret. */
interface Confirmation {
  /** Path of this site to which the user may go back without confirming. */
  readonly cancel: string
  /** The posted form that is handled after the confirmation. `change` names what it does. */
  readonly intent?: {
    readonly path: string
    readonly fields: Readonly<Record<string, string>>
    readonly change: readonly MessageKey[]
  }
}

/** A stored authorization request. The `id_token_hint` was verified before, and only its user is stored. */
export type FlowRequest = Omit<AuthorizeRequest, 'id_token_hint'> & {
  readonly hinted_user_id: string | undefined
  /** Page of this site on which the flow ends. Set only in a flow that has no client. */
  readonly back?: string
  /** Set in a flow that has no client, and in which the signed-in hinted user confirms who they are. */
  readonly confirm?: Confirmation
  /** True after the user has asked to choose among the logins of this browser. */
  readonly choose?: boolean
  /**
   * True after the user has typed an address that led to the login page of another organization. No login of
   * this browser answers such a request. Unlike `prompt=login`, this field demands no new authentication at a
   * provider.
   */
  readonly another?: boolean | undefined
  /** The name or address for which the user has requested a code by mail, as typed. */
  readonly code_for?: string | undefined
  /** Set in a flow that has no client and whose user wants to add a factor. */
  readonly enrol?: boolean
  /**
   * Set in a flow that has no client and may use up an invitation: the hash of the invitation's link, and the
   * invited e-mail address.
   */
  readonly invited?: { readonly link_hash: SecretHash; readonly email: string | null }
}

/**
 * An authorization that waits for the user, bound to one browser. `login_id` is the chosen login. With
 * `selected` and a login, the user has selected the login but not proven it in this flow. With `selected` and
 * no login, the user wants another account. `proof` is a proven first factor that waits for the second
 * factor.
 */
export type Pending = Omit<Tables['authorization_requests']['$inferSelect'], 'request'> & {
  request: FlowRequest
}

const pendingOf = prepared((q, { authorization_requests: t }) =>
  q
    .select()
    .from(t)
    .where(
      and(
        eq(t.request_hash, sql.placeholder('request_hash')),
        eq(t.browser_hash, sql.placeholder('browser_hash')),
        gt(t.expires_at, sql.placeholder('now')),
      ),
    ),
)

/** Returns the pending request of a handle, if it belongs to this browser and has not expired. */
export const findPending = async (
  q: Queries,
  key: { request_hash: SecretHash; browser_hash: SecretHash; now: number },
): Promise<Pending | undefined> => (await pendingOf(q, key))[0] as Pending | undefined

/** A proven first factor that waits for the second factor. */
export type FirstFactorProof = NonNullable<Pending['proof']>

/** The login or first factor with which a flow goes on. */
export type ChosenLogin = Pick<Pending, 'login_id' | 'selected' | 'proof'>

/** Stores a new pending request. */
export const insertPending = async (tx: Transaction, pending: Pending): Promise<void> => {
  await tx.insert(tx.tables.authorization_requests).values(pending)
}

/** Stores the login or first factor with which a flow goes on. Returns true if the request still exists. */
export const updatePending = async (
  tx: Transaction,
  request_hash: SecretHash,
  chosen: ChosenLogin & Partial<Pick<Pending, 'enrolled' | 'recovered_by'>>,
): Promise<boolean> => {
  const { authorization_requests: t } = tx.tables
  const rows = await tx
    .update(t)
    .set(chosen)
    .where(eq(t.request_hash, request_hash))
    .returning({ hash: t.request_hash })
  return rows.length > 0
}

/**
 * Drops the chosen login, the proofs and the challenges of the flow. The user chooses again: among the logins
 * of this browser (`choose`), or by signing in.
 */
export const chooseAgain = async (
  tx: Transaction,
  { request_hash, request }: Pending,
  choose: boolean,
): Promise<void> => {
  const { authorization_requests: t } = tx.tables
  await tx
    .update(t)
    .set({
      request: { ...request, choose, another: undefined, code_for: undefined },
      login_id: null,
      selected: !choose,
      proof: null,
      enrolled: false,
      recovered_by: null,
      round: sql`${t.round} + 1`,
    })
    .where(eq(t.request_hash, request_hash))
}

/** Stores the name or address for which the user has requested a code by mail. */
export const setCodeFor = async (
  tx: Transaction,
  { request_hash, request }: Pick<Pending, 'request_hash' | 'request'>,
  code_for: string,
): Promise<void> => {
  const { authorization_requests: t } = tx.tables
  await tx
    .update(t)
    .set({ request: { ...request, code_for } })
    .where(eq(t.request_hash, request_hash))
}

/**
 * Increases `round`, so that the challenges derived from its earlier value no longer work (`roundOf`).
 * Returns true for exactly one caller.
 */
export const consumeRound = async (
  tx: Transaction,
  { request_hash, round }: Pick<Pending, 'request_hash' | 'round'>,
): Promise<boolean> => {
  const { authorization_requests: t } = tx.tables
  const rows = await tx
    .update(t)
    .set({ round: round + 1 })
    .where(and(eq(t.request_hash, request_hash), eq(t.round, round)))
    .returning({ round: t.round })
  return rows.length > 0
}

/** Ends a request. Returns true for exactly one caller. This caller issues the code or the refusal. */
export const consumePending = async (tx: Transaction, request_hash: SecretHash): Promise<boolean> => {
  const { authorization_requests: t } = tx.tables
  const rows = await tx.delete(t).where(eq(t.request_hash, request_hash)).returning({ hash: t.request_hash })
  return rows.length > 0
}

/**
 * Lifetime of a stored POST in milliseconds. The browser follows the redirect at once, but may have to try
 * again on a bad connection.
 */
const POST_KEPT_FOR = 5 * MINUTE

/**
 * Stores the body of a cross-site POST until a GET on this origin replays it. `kind` names the endpoint that
 * replays the body. A second POST with the same handle replaces the first.
 */
export const insertStoredPost = async (
  tx: Transaction,
  { now, ...post }: { handle_hash: SecretHash; kind: string; body: string; now: number },
): Promise<void> => {
  const { stored_posts: t } = tx.tables
  const row = { ...post, expires_at: now + POST_KEPT_FOR }
  await tx.insert(t).values(row).onConflictDoUpdate({ target: t.handle_hash, set: row })
}

/**
 * Deletes the stored POST and returns its body. Returns undefined when the POST was used before or has
 * expired.
 */
export const consumeStoredPost = async (
  tx: Transaction,
  key: { handle_hash: SecretHash; kind: string; now: number },
): Promise<string | undefined> => {
  const { stored_posts: t } = tx.tables
  const [row] = await tx
    .delete(t)
    .where(and(eq(t.handle_hash, key.handle_hash), eq(t.kind, key.kind), gt(t.expires_at, key.now)))
    .returning({ body: t.body })
  return row?.body
}
