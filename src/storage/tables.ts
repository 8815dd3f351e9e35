/** Over 300 lines on purpose: the whole data model is in one file. */
import { sql } from 'drizzle-orm'
import type {
  ApiId,
  EventId,
  FactorId,
  GroupId,
  IdentityProviderId,
  InitialAccessTokenId,
  InvitationId,
  KeyId,
  LoginId,
  OrganizationId,
  RememberedBrowserId,
  RoleId,
  SessionId,
  UserId,
  WebhookId,
} from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Registration } from '#src/protocol/oauth/dynamic-client.ts'
import type { GrantType } from '#src/protocol/oauth/token-request.ts'
import type { ClaimMapping } from '#src/protocol/oidc/claim-mapping.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import type { Kit } from './kit.ts'
import { AWAITED, type MailKind } from './mail-kinds.ts'

/** Condition for clients that a person can start from the account pages. */
export const STARTABLE = '(client_uri IS NOT NULL OR initiate_login_uri IS NOT NULL)'

/**
 * Condition for mails that a person waits for. An engine uses the partial index `mails_awaited` only for a
 * query that has the same condition without parameters.
 */
export const IS_AWAITED = `kind IN (${AWAITED.map(kind => `'${kind}'`).join(', ')})`

/**
 * Makes a table at its first use, because a start needs few tables, and making all of them takes as long as
 * the rest of the start.
 */
const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

const lazily = <T extends Record<string, () => unknown>>(all: T) =>
  Object.defineProperties(
    {},
    Object.fromEntries(Object.entries(all).map(([name, get]) => [name, { get, enumerable: true }])),
  ) as { readonly [Name in keyof T]: ReturnType<T[Name]> }

/**
 * The data model, once for both engines. Columns are named like the fields of the admin API. Most rows belong
 * to an organization. A query for a caller who is limited to one organization has a condition on that
 * organization. A random secret that the server only has to recognize is stored as its SHA-256 (`*_hash`). A
 * secret that the server has to use is sealed. Triggers maintain counts (`user_count`, `member_count`,
 * `counters`) and the search index.
 *
 * When a row is deleted, the rows that depend on it are deleted too. A few rows are deleted in the same write
 * (`cascade`). Many rows are deleted later, in batches (`purges`). No foreign key refers to `organizations`:
 * a deleted organization is hidden at once, and most of its rows are removed in batches.
 */
export const tables = (kit: Kit) => {
  const { table, text, bool, int, ms, json, bytes, index, uniqueIndex, primaryKey } = kit
  const id = <T extends string>(name: string) => text(name).$type<T>()
  const organization_id = () => id<OrganizationId>('organization_id').notNull()
  const user_id = () => id<UserId>('user_id').notNull()
  const role_id = () => id<RoleId>('role_id').notNull()
  const group_id = () => id<GroupId>('group_id').notNull()
  const provider_id = () => id<IdentityProviderId>('provider_id').notNull()
  const created_at = () => ms('created_at').notNull()
  const updated_at = () => ms('updated_at').notNull()
  const cascade = { onDelete: 'cascade' } as const

  /** Stored values of the server, such as the sealed instance key and the settings of the admin API. */
  const settings = once(() =>
    table('settings', {
      name: text('name').primaryKey(),
      value: json('value').notNull(),
      updated_at: updated_at(),
    }),
  )

  /**
   * `private_key` is a sealed PKCS #8 key. A key signs from `active_at` to `retired_at` and is published
   * until `expires_at`.
   */
  const signing_keys = once(() =>
    table('signing_keys', {
      id: id<KeyId>('id').primaryKey(),
      alg: text('alg').notNull(),
      public_jwk: json('public_jwk').$type<Record<string, string>>().notNull(),
      private_key: bytes('private_key').notNull(),
      created_at: created_at(),
      active_at: ms('active_at').notNull(),
      retired_at: ms('retired_at'),
      expires_at: ms('expires_at'),
    }),
  )

  const organizations = once(() =>
    table(
      'organizations',
      {
        id: id<OrganizationId>('id').primaryKey(),
        name: text('name').notNull(),
        slug: text('slug').notNull(),
        display_name: text('display_name').notNull(),
        /**
         * Name, slug and display name for the search. The server folds their case, because SQLite folds only
         * ASCII.
         */
        search_text: text('search_text').notNull(),
        settings: json('settings').$type<Record<string, unknown>>().notNull(),
        user_count: int('user_count').notNull().default(0),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('organizations_slug').on(t.slug),
        index('organizations_created').on(t.created_at, t.id),
      ],
    ),
  )

  /**
   * Images and stylesheets of an organization's pages. They are too large to be loaded with the organization.
   */
  const organization_assets = once(() =>
    table(
      'organization_assets',
      {
        organization_id: organization_id(),
        /** First 32 hexadecimal digits of the SHA-256 of type and body. */
        hash: text('hash').notNull(),
        /** File extension in the URL: png, svg, webp, jpg or css. */
        type: text('type').notNull(),
        body: bytes('body').notNull(),
      },
      t => [uniqueIndex('organization_assets_hash').on(t.organization_id, t.hash)],
    ),
  )

  /** The domains in `settings.login_domains`. Each belongs to one organization. */
  const login_domains = once(() =>
    table('login_domains', { domain: text('domain').primaryKey(), organization_id: organization_id() }, t => [
      index('login_domains_organization').on(t.organization_id),
    ]),
  )

  const roles = once(() =>
    table(
      'roles',
      {
        id: id<RoleId>('id').primaryKey(),
        organization_id: organization_id(),
        name: text('name').notNull(),
        description: text('description').notNull().default(''),
        built_in: bool('built_in').notNull().default(false),
        permissions: json('permissions').$type<string[]>().notNull(),
        user_count: int('user_count').notNull().default(0),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('roles_name').on(t.organization_id, t.name),
        index('roles_created').on(t.organization_id, t.created_at, t.id),
        index('roles_all_created').on(t.created_at, t.id),
      ],
    ),
  )

  const users = once(() =>
    table(
      'users',
      {
        /** Row number for the search index. VACUUM does not change it, but can change an implicit rowid. */
        seq: kit.serial('seq'),
        id: id<UserId>('id').notNull(),
        organization_id: organization_id(),
        username: text('username').notNull(),
        username_fold: text('username_fold').notNull(),
        email: text('email').notNull(),
        email_fold: text('email_fold').notNull(),
        /** The new address of the user until it is verified. */
        pending_email: text('pending_email'),
        first_name: text('first_name').notNull(),
        last_name: text('last_name').notNull(),
        /** Text for the search (`searchText`). The server folds its case, because SQLite folds only ASCII. */
        search_text: text('search_text').notNull(),
        enabled: bool('enabled').notNull().default(true),
        email_verified: bool('email_verified').notNull().default(false),
        attributes: json('attributes').$type<Record<string, unknown>>().notNull(),
        /** A PHC string of argon2, or an imported bcrypt hash; null for a user without a password. */
        password_hash: text('password_hash'),
        password_temporary: bool('password_temporary').notNull().default(false),
        password_changed_at: ms('password_changed_at').notNull(),
        /** False for a user who gets no sign-in codes by mail, even if the organization offers such codes. */
        email_code: bool('email_code').notNull().default(true),
        /** Path of the uploaded picture. Its content is in `pictures`. */
        picture: text('picture'),
        created_at: created_at(),
        updated_at: updated_at(),
        last_login: ms('last_login'),
        /**
         * Time at which the statistics last counted the user as active. A user counts once in each hour: at
         * the first login or refresh.
         */
        active_at: ms('active_at'),
        /** Last time that the user declined the offer of a passkey. */
        passkey_declined_at: ms('passkey_declined_at'),
      },
      t => [
        uniqueIndex('users_id').on(t.id),
        // One person can be a user of several organizations, with the same address and a separate password in
        // each.
        uniqueIndex('users_username').on(t.organization_id, t.username_fold),
        uniqueIndex('users_email').on(t.organization_id, t.email_fold),
        // List queries read these indexes in order, one range for each combination of `enabled` and
        // `email_verified`. A filter that matches few users thus costs no more than a filter that matches
        // many users.
        index('users_created').on(t.organization_id, t.enabled, t.email_verified, t.seq),
        index('users_sorted_username').on(
          t.organization_id,
          t.enabled,
          t.email_verified,
          t.username_fold,
          t.seq,
        ),
        index('users_sorted_email').on(t.organization_id, t.enabled, t.email_verified, t.email_fold, t.seq),
        index('users_last_login').on(t.organization_id, t.enabled, t.email_verified, t.last_login, t.seq),
        index('users_all_created').on(t.enabled, t.email_verified, t.seq),
        index('users_all_username').on(t.enabled, t.email_verified, t.username_fold, t.seq),
        index('users_all_email').on(t.enabled, t.email_verified, t.email_fold, t.seq),
        index('users_all_last_login').on(t.enabled, t.email_verified, t.last_login, t.seq),
      ],
    ),
  )

  /** Versions of an organization's terms (`settings.terms`) that users have accepted. */
  const terms_acceptances = once(() =>
    table(
      'terms_acceptances',
      {
        user_id: user_id().references(() => users().id, cascade),
        organization_id: organization_id(),
        version: text('version').notNull(),
        accepted_at: ms('accepted_at').notNull(),
      },
      t => [primaryKey({ columns: [t.user_id, t.version] })],
    ),
  )

  /** Pictures of users, without the metadata of the uploaded files (`pages/photo.ts`). */
  const pictures = once(() =>
    table(
      'pictures',
      {
        user_id: id<UserId>('user_id')
          .primaryKey()
          .references(() => users().id, cascade),
        organization_id: organization_id(),
        /** First 32 hexadecimal digits of the SHA-256 of user, type and body. */
        hash: text('hash').notNull(),
        /** File extension in the URL: png, jpg or webp. */
        type: text('type').notNull(),
        body: bytes('body').notNull(),
      },
      t => [uniqueIndex('pictures_hash').on(t.hash)],
    ),
  )

  /**
   * `seq` and the columns after it are copies of the user's values, so that users with a role can be listed
   * in any order. A trigger updates the copies.
   */
  const user_roles = once(() =>
    table(
      'user_roles',
      {
        number: kit.serial('number'),
        user_id: user_id().references(() => users().id, cascade),
        /** No foreign key, because rows of a deleted role are ignored and removed in batches (`purges`). */
        role_id: role_id(),
        role_name: text('role_name').notNull(),
        organization_id: organization_id(),
        seq: int('seq').notNull(),
        enabled: bool('enabled').notNull(),
        email_verified: bool('email_verified').notNull(),
        username_fold: text('username_fold').notNull(),
        email_fold: text('email_fold').notNull(),
        last_login: ms('last_login'),
      },
      t => [
        uniqueIndex('user_roles_user').on(t.user_id, t.role_id),
        index('user_roles_created').on(t.role_id, t.enabled, t.email_verified, t.seq),
        index('user_roles_username').on(t.role_id, t.enabled, t.email_verified, t.username_fold, t.seq),
        index('user_roles_email').on(t.role_id, t.enabled, t.email_verified, t.email_fold, t.seq),
        index('user_roles_last_login').on(t.role_id, t.enabled, t.email_verified, t.last_login, t.seq),
        index('user_roles_all_created').on(t.role_name, t.enabled, t.email_verified, t.seq),
        index('user_roles_all_username').on(t.role_name, t.enabled, t.email_verified, t.username_fold, t.seq),
        index('user_roles_all_email').on(t.role_name, t.enabled, t.email_verified, t.email_fold, t.seq),
        index('user_roles_all_last_login').on(t.role_name, t.enabled, t.email_verified, t.last_login, t.seq),
      ],
    ),
  )

  /**
   * The searchable attributes of users (`settings.user_attributes`): one row for each value. A list has one
   * row for each item. `value_hash` is the SHA-256 of the value as text (base64url), because an index limits
   * the length of values.
   */
  const user_attributes = once(() =>
    table(
      'user_attributes',
      {
        user_id: user_id().references(() => users().id, cascade),
        organization_id: organization_id(),
        name: text('name').notNull(),
        value_hash: text('value_hash').notNull(),
      },
      t => [
        primaryKey({ columns: [t.user_id, t.name, t.value_hash] }),
        index('user_attributes_value').on(t.name, t.value_hash, t.organization_id, t.user_id),
      ],
    ),
  )

  const groups = once(() =>
    table(
      'groups',
      {
        id: id<GroupId>('id').primaryKey(),
        organization_id: organization_id(),
        name: text('name').notNull(),
        description: text('description').notNull().default(''),
        member_count: int('member_count').notNull().default(0),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('groups_name').on(t.organization_id, t.name),
        index('groups_created').on(t.organization_id, t.created_at, t.id),
        index('groups_all_created').on(t.created_at, t.id),
      ],
    ),
  )

  const group_roles = once(() =>
    table(
      'group_roles',
      {
        group_id: group_id().references(() => groups().id, cascade),
        role_id: role_id().references(() => roles().id, cascade),
      },
      t => [primaryKey({ columns: [t.group_id, t.role_id] }), index('group_roles_role').on(t.role_id)],
    ),
  )

  const group_members = once(() =>
    table(
      'group_members',
      {
        /** No foreign key, because rows of a deleted group are ignored and removed in batches (`purges`). */
        group_id: group_id(),
        user_id: user_id().references(() => users().id, cascade),
      },
      t => [primaryKey({ columns: [t.group_id, t.user_id] }), index('group_members_user').on(t.user_id)],
    ),
  )

  const clients = once(() =>
    table(
      'clients',
      {
        client_id: text('client_id').primaryKey(),
        organization_id: organization_id(),
        secret_hash: text('secret_hash').$type<SecretHash>(),
        name: text('name').notNull(),
        description: text('description').notNull().default(''),
        type: text('type').$type<'confidential' | 'public'>().notNull(),
        kind: text('kind').$type<'web' | 'spa' | 'native' | 'service'>(),
        redirect_uris: json('redirect_uris').$type<string[]>().notNull(),
        post_logout_redirect_uris: json('post_logout_redirect_uris').$type<string[]>().notNull(),
        web_origins: json('web_origins').$type<string[]>().notNull(),
        grant_types: json('grant_types').$type<GrantType[]>().notNull(),
        scopes: json('scopes').$type<string[]>().notNull(),
        token_endpoint_auth_method: text('token_endpoint_auth_method')
          .$type<'client_secret_basic' | 'client_secret_post' | 'none'>()
          .notNull(),
        access_token_ttl: int('access_token_ttl').notNull(),
        refresh_token_ttl: int('refresh_token_ttl').notNull(),
        capabilities: json('capabilities')
          .$type<('token_introspection' | 'cross_organization')[]>()
          .notNull(),
        consent_required: bool('consent_required').notNull(),
        id_token_signed_response_alg: text('id_token_signed_response_alg').$type<SigningAlg>(),
        access_token_signed_response_alg: text('access_token_signed_response_alg').$type<SigningAlg>(),
        access_token_typ: text('access_token_typ').$type<'at+jwt' | 'JWT'>().notNull(),
        refresh_token_reuse_window: int('refresh_token_reuse_window').notNull(),
        id_token_on_refresh: bool('id_token_on_refresh').notNull().default(false),
        backchannel_logout_uri: text('backchannel_logout_uri'),
        backchannel_logout_session_required: bool('backchannel_logout_session_required')
          .notNull()
          .default(false),
        backchannel_logout_on_expiry: bool('backchannel_logout_on_expiry').notNull().default(false),
        attributes: json('attributes').$type<Record<string, unknown>>().notNull().default(sql`'{}'`),
        allowed_roles: json('allowed_roles').$type<string[]>().notNull().default(sql`'[]'`),
        allowed_groups: json('allowed_groups').$type<string[]>().notNull().default(sql`'[]'`),
        claims: json('claims').$type<ClaimMapping>().notNull().default(sql`'{}'`),
        /** URL of an asset of the client's organization. */
        logo: text('logo'),
        client_uri: text('client_uri'),
        policy_uri: text('policy_uri'),
        tos_uri: text('tos_uri'),
        initiate_login_uri: text('initiate_login_uri'),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        index('clients_created').on(t.organization_id, t.created_at, t.client_id),
        index('clients_startable').on(t.organization_id, t.name, t.client_id).where(sql.raw(STARTABLE)),
        index('clients_all_created').on(t.created_at, t.client_id),
      ],
    ),
  )

  /**
   * Clients that registered themselves (https://www.rfc-editor.org/rfc/rfc7591), and clients whose id is the
   * URL of their metadata document. A row of the first kind is stored at the registration. Its `used_at` is
   * null until a user allows the client. The row is soon removed if no user allows the client. A row of the
   * second kind is stored when a user allows the client.
   */
  const dynamic_clients = once(() =>
    table(
      'dynamic_clients',
      {
        client_id: text('client_id').primaryKey(),
        /**
         * The organization of the initial access token; null for a client that registered without a token,
         * and for a client with a metadata document.
         */
        organization_id: text('organization_id').$type<OrganizationId>(),
        secret_hash: text('secret_hash').$type<SecretHash>(),
        /**
         * Name that pages show: the name that the client gave itself. Without such a name it is the host of
         * the client's first redirect URI or of its metadata document.
         */
        name: text('name').notNull(),
        registration: json('registration').$type<Registration>().notNull(),
        /**
         * Time at which a user last consented or a code was last redeemed. The time is updated at most once a
         * day (`noteUse`).
         */
        used_at: ms('used_at'),
        created_at: created_at(),
        /**
         * Time of the last change of redirect URIs, keys or authentication methods. A consent that was given
         * before this time is not valid.
         */
        changed_at: ms('changed_at'),
      },
      t => [
        index('dynamic_clients_used').on(t.used_at, t.created_at),
        index('dynamic_clients_created').on(t.created_at, t.client_id),
      ],
    ),
  )

  /** Tokens with which a client may register itself (https://www.rfc-editor.org/rfc/rfc7591#section-3). */
  const initial_access_tokens = once(() =>
    table(
      'initial_access_tokens',
      {
        id: id<InitialAccessTokenId>('id').primaryKey(),
        token_hash: text('token_hash').$type<SecretHash>().notNull(),
        organization_id: organization_id(),
        uses_left: int('uses_left').notNull(),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [
        uniqueIndex('initial_access_tokens_hash').on(t.token_hash),
        index('initial_access_tokens_expires').on(t.expires_at),
      ],
    ),
  )

  /**
   * Services for which this server issues separate access tokens (https://www.rfc-editor.org/rfc/rfc8707). A
   * row contains the `client_id` of clients, and the names of roles and scopes. All of them belong to the
   * organization of the API.
   */
  const apis = once(() =>
    table(
      'apis',
      {
        id: id<ApiId>('id').primaryKey(),
        /** Audience of the API's tokens. */
        identifier: text('identifier').notNull(),
        /** The identifier without a trailing slash. The `resource` of a request is compared with it. */
        identifier_key: text('identifier_key').notNull(),
        name: text('name').notNull(),
        organization_id: organization_id(),
        scopes: json('scopes')
          .$type<
            { name: string; texts: Record<string, string>; role: string | null; claims?: ClaimMapping }[]
          >()
          .notNull(),
        clients: json('clients').$type<{ client_id: string; scopes: string[] }[]>().notNull(),
        /** Clients that may introspect the API's tokens. */
        served_by: json('served_by').$type<string[]>().notNull(),
        access_token_ttl: int('access_token_ttl'),
        access_token_alg: text('access_token_alg').$type<SigningAlg>(),
        open_to_dynamic_clients: bool('open_to_dynamic_clients').notNull(),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('apis_identifier').on(t.identifier_key),
        index('apis_created').on(t.organization_id, t.created_at, t.id),
        index('apis_all_created').on(t.created_at, t.id),
      ],
    ),
  )

  /**
   * A user authenticated in a browser. The logins of several users in one browser share a cookie.
   * `browser_hash` is the hash of this cookie.
   */
  const logins = once(() =>
    table(
      'logins',
      {
        id: id<LoginId>('id').primaryKey(),
        browser_hash: text('browser_hash').$type<SecretHash>().notNull(),
        user_id: user_id(),
        organization_id: organization_id(),
        /** Time of the last authentication, as reported to clients; 0 when the provider reported no time. */
        auth_time: ms('auth_time').notNull(),
        /** Time of the last sign-in in this browser. Single sign-on by a provider counts as a sign-in. */
        signed_in_at: ms('signed_in_at').notNull(),
        /**
         * Time from which the login needs no audit event of its own; null before. It is set when that event
         * is recorded, and when the login replaces another login. It is also set when the sweep removes one
         * of the login's sessions, because the event for a session also counts as the event for its login.
         */
        recorded_at: ms('recorded_at'),
        acr: text('acr').notNull(),
        amr: json('amr').$type<string[]>().notNull(),
        ip_address: text('ip_address').notNull(),
        user_agent: text('user_agent').notNull(),
        /**
         * Maps a client id ('' for all clients) to the number of the latest revocation of this login's codes;
         * null before the first revocation. Revocations are numbered from 1. A code contains the number that
         * was the latest when the code was issued. A later revocation for the code's client or for all
         * clients makes the code invalid.
         */
        codes_revoked: json('codes_revoked').$type<Record<string, number>>(),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [
        index('logins_browser').on(t.browser_hash),
        index('logins_user').on(t.user_id),
        index('logins_expires').on(t.expires_at),
      ],
    ),
  )

  /**
   * Sessions of users at clients. A session begins with a code exchange, and all refresh tokens that descend
   * from this exchange belong to it. A session is active while `ended_at` is null and `expires_at` is in the
   * future. From `tokens_valid_until` on, this server refuses the session's access tokens. `revokeSessions`
   * sets `tokens_valid_until`. `/oauth/revoke` and deletions of clients and users use `releaseSessions`,
   * which ends a session but does not change its `tokens_valid_until`.
   */
  const sessions = once(() =>
    table(
      'sessions',
      {
        id: id<SessionId>('id').primaryKey(),
        user_id: user_id(),
        client_id: text('client_id').notNull(),
        organization_id: organization_id(),
        login_id: id<LoginId>('login_id').notNull(),
        scope: text('scope').notNull(),
        /**
         * Identifiers of the APIs that the authorization names, separated by spaces; null when it names no
         * API.
         */
        resources: text('resources'),
        ip_address: text('ip_address').notNull(),
        user_agent: text('user_agent').notNull(),
        location: text('location').notNull().default(''),
        started_at: ms('started_at').notNull(),
        last_active_at: ms('last_active_at').notNull(),
        expires_at: ms('expires_at').notNull(),
        /**
         * Time at which the sweep next checks the session. It is never later than `expires_at`. The index is
         * on `due_at`, because `expires_at` changes with each refresh.
         */
        due_at: ms('due_at').notNull(),
        /**
         * Time at which the session ends even if it is refreshed: its start plus the organization's
         * `session_ttl`. null when the organization has no `session_ttl`.
         */
        ends_by: ms('ends_by'),
        ended_at: ms('ended_at'),
        /**
         * Hash of the current refresh token, which was issued at `last_active_at`; null without a refresh
         * token.
         */
        refresh_hash: text('refresh_hash').$type<SecretHash>(),
        tokens_valid_until: ms('tokens_valid_until'),
        /**
         * Claims of the first ID token that the ID tokens of refreshes repeat. `auth_time` is in seconds. The
         * session keeps them, because its login may end earlier. null when the client had no
         * `id_token_on_refresh` at the start of the session.
         */
        authentication: json('authentication').$type<{ auth_time: number; acr: string; amr: string[] }>(),
      },
      t => [
        // Lists show sessions that have not ended, in the order of creation. A list reads no ended sessions,
        // because `ended_at` precedes `id` in these indexes.
        index('sessions_user').on(t.user_id, t.ended_at, t.id),
        index('sessions_client').on(t.client_id, t.ended_at, t.id),
        index('sessions_organization').on(t.organization_id, t.ended_at, t.id),
        index('sessions_all').on(t.ended_at, t.id),
        index('sessions_login').on(t.login_id),
        index('sessions_due').on(t.ended_at, t.due_at),
      ],
    ),
  )

  /**
   * Authorization codes whose content (`sealed`) is too long for a URL, and codes that became unusable
   * without beginning a session (`sealed` is null). Other codes have no row: a used code is recognized by the
   * session that was made with it.
   */
  const authorization_codes = once(() =>
    table(
      'authorization_codes',
      {
        code_hash: text('code_hash').$type<SecretHash>().primaryKey(),
        /**
         * Content of the code, encrypted with a key derived from the instance key and bound to the client.
         */
        sealed: text('sealed'),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('authorization_codes_expires').on(t.expires_at)],
    ),
  )

  /**
   * A pending authorization request, stored when the user has to act. `client_id` is empty for a login that
   * leads to /account.
   */
  const authorization_requests = once(() =>
    table(
      'authorization_requests',
      {
        request_hash: text('request_hash').$type<SecretHash>().primaryKey(),
        browser_hash: text('browser_hash').$type<SecretHash>().notNull(),
        client_id: text('client_id').notNull(),
        organization_id: organization_id(),
        request: json('request').$type<Record<string, unknown>>().notNull(),
        login_id: id<LoginId>('login_id'),
        selected: bool('selected').notNull().default(false),
        /**
         * The first factor, which the user has proven. It is kept until the user has proven the second
         * factor, because the login begins only then.
         */
        proof: json('proof').$type<{
          user_id: UserId
          acr: string
          amr: string[]
          /** `auth_time` for the login that will begin, if the provider reported it. */
          auth_time?: number
          at: number
          password_changed_at: number
          /** Sealed post-login action. */
          action?: string
          /**
           * The provider account that identified the user. `origin` is a hash of the settings of the provider
           * at that time.
           */
          account?: { provider_id: IdentityProviderId; subject: string; origin?: string | undefined }
          /** Time at which the login ends at the latest, if the provider limits the login. */
          until?: number
          /** The user got a first credential in the request that proved the first factor. */
          is_first?: true
        } | null>(),
        /**
         * Input for deriving passkey challenges and new TOTP secrets. The number is incremented when a factor
         * is proven or added.
         */
        round: int('round').notNull().default(0),
        enrolled: bool('enrolled').notNull().default(false),
        /**
         * The user who has used a recovery code in place of a lost passkey, and has to add another passkey.
         */
        recovered_by: id<UserId>('recovered_by'),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [
        index('authorization_requests_browser').on(t.browser_hash),
        index('authorization_requests_expires').on(t.expires_at),
      ],
    ),
  )

  /** Body of a cross-site POST, kept until the browser repeats the request as a same-site GET. */
  const stored_posts = once(() =>
    table(
      'stored_posts',
      {
        handle_hash: text('handle_hash').$type<SecretHash>().primaryKey(),
        kind: text('kind').notNull(),
        body: text('body').notNull(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('stored_posts_expires').on(t.expires_at)],
    ),
  )

  const consents = once(() =>
    table(
      'consents',
      {
        user_id: user_id(),
        client_id: text('client_id').notNull(),
        organization_id: organization_id(),
        scopes: json('scopes').$type<string[]>().notNull(),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        primaryKey({ columns: [t.user_id, t.client_id] }),
        index('consents_client').on(t.client_id, t.organization_id),
      ],
    ),
  )

  /** Upstream identity providers. `settings` depends on the type; `client_secret` is sealed. */
  const identity_providers = once(() =>
    table(
      'identity_providers',
      {
        id: id<IdentityProviderId>('id').primaryKey(),
        alias: text('alias').notNull(),
        name: text('name').notNull(),
        type: text('type').$type<'oidc' | 'oauth2' | 'saml'>().notNull(),
        organization_id: organization_id(),
        enabled: bool('enabled').notNull(),
        allow_registration: bool('allow_registration').notNull(),
        trust_email: bool('trust_email').notNull(),
        /**
         * Ids are stored rather than names, because a role that is created again under the same name is a
         * different role.
         */
        default_role_ids: json('default_role_ids').$type<RoleId[]>().notNull(),
        attribute_mapping: json('attribute_mapping').$type<Record<string, string>>().notNull(),
        settings: json('settings').notNull(),
        client_secret: bytes('client_secret'),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('identity_providers_alias').on(t.alias),
        index('identity_providers_created').on(t.organization_id, t.created_at, t.id),
        index('identity_providers_all_created').on(t.created_at, t.id),
      ],
    ),
  )

  /**
   * Links a provider's `subject` to a user. Rows of a deleted provider are ignored and removed in batches
   * (`purges`).
   */
  const external_accounts = once(() =>
    table(
      'external_accounts',
      {
        provider_id: provider_id(),
        subject: text('subject').notNull(),
        user_id: user_id().references(() => users().id, cascade),
        organization_id: organization_id(),
        /** The provider's name for the account, shown to the user. */
        label: text('label').notNull(),
        created_at: created_at(),
      },
      t => [
        primaryKey({ columns: [t.provider_id, t.subject] }),
        index('external_accounts_user').on(t.user_id),
      ],
    ),
  )

  /**
   * Upstream authorization requests. `step` is `sent` until the provider's answer arrives, and `answered`
   * while this server waits for the user's reply to a question.
   */
  const upstream_requests = once(() =>
    table(
      'upstream_requests',
      {
        state_hash: text('state_hash').$type<SecretHash>().primaryKey(),
        step: text('step').$type<'sent' | 'answered'>().notNull(),
        browser_hash: text('browser_hash').$type<SecretHash>().notNull(),
        provider_id: provider_id(),
        /**
         * Sealed: the handle of the authorization request and, after the provider's answer, the asserted
         * profile.
         */
        sealed: bytes('sealed').notNull(),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('upstream_requests_expires').on(t.expires_at)],
    ),
  )

  /**
   * Factors of users. The row of an authenticator app (`totp`) has a sealed secret and the time step of the
   * last used code. The row of a passkey has the credential record.
   * https://www.w3.org/TR/webauthn-3/#credential-record
   */
  const factors = once(() =>
    table(
      'factors',
      {
        id: id<FactorId>('id').primaryKey(),
        user_id: user_id().references(() => users().id, cascade),
        type: text('type').$type<'totp' | 'passkey'>().notNull(),
        name: text('name').notNull(),
        secret: bytes('secret'),
        last_step: int('last_step').notNull().default(0),
        credential_id: text('credential_id'),
        public_key: bytes('public_key'),
        sign_count: int('sign_count').notNull().default(0),
        transports: json('transports').$type<string[]>().notNull(),
        /** True when the passkey can exist on several devices. */
        synced: bool('synced').notNull().default(false),
        /** True for a passkey that was made for logins without a password, or was used for such a login. */
        alone: bool('alone').notNull().default(false),
        created_at: created_at(),
        last_used_at: ms('last_used_at'),
      },
      t => [index('factors_user').on(t.user_id), uniqueIndex('factors_credential').on(t.credential_id)],
    ),
  )

  /** Unused recovery codes; `code_hash` is keyed with the instance key. A code is deleted when it is used. */
  const recovery_codes = once(() =>
    table(
      'recovery_codes',
      {
        user_id: user_id().references(() => users().id, cascade),
        code_hash: text('code_hash').notNull(),
      },
      t => [primaryKey({ columns: [t.user_id, t.code_hash] })],
    ),
  )

  /**
   * Assertions that were used for a login or by a client. They are kept until they expire, so that nobody can
   * use them again. The key is a hash over the ID of the assertion and the provider or client that issued it.
   */
  const used_assertions = once(() =>
    table(
      'used_assertions',
      {
        assertion_hash: text('assertion_hash').$type<SecretHash>().primaryKey(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('used_assertions_expires').on(t.expires_at)],
    ),
  )

  /**
   * Browsers in which a user has signed in, each with its own cookie. A login from any other browser is a
   * login from a new browser.
   */
  const devices = once(() =>
    table(
      'devices',
      {
        user_id: user_id().references(() => users().id, cascade),
        device_hash: text('device_hash').$type<SecretHash>().notNull(),
        last_seen_at: ms('last_seen_at').notNull(),
      },
      t => [
        primaryKey({ columns: [t.user_id, t.device_hash] }),
        index('devices_hash').on(t.device_hash),
        index('devices_seen').on(t.last_seen_at),
      ],
    ),
  )

  /**
   * Browsers in which a user need not prove the second factor (`settings.remember_browser_days`). Each
   * browser is identified by a cookie. A browser of several users has one cookie and a row for each user.
   */
  const remembered_browsers = once(() =>
    table(
      'remembered_browsers',
      {
        id: id<RememberedBrowserId>('id').primaryKey(),
        user_id: user_id().references(() => users().id, cascade),
        organization_id: organization_id(),
        browser_hash: text('browser_hash').$type<SecretHash>().notNull(),
        ip_address: text('ip_address').notNull(),
        user_agent: text('user_agent').notNull(),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [
        uniqueIndex('remembered_browsers_user').on(t.user_id, t.browser_hash),
        index('remembered_browsers_hash').on(t.browser_hash),
        index('remembered_browsers_organization').on(t.organization_id),
        index('remembered_browsers_expires').on(t.expires_at),
      ],
    ),
  )

  /**
   * Outgoing mail. A row has the kind and the data of a mail. The sender looks up the address and makes the
   * text, links and codes, so none of these is stored. `user_id` is null when the sender finds the recipient
   * by the identifier in `data`.
   */
  const mails = once(() =>
    table(
      'mails',
      {
        number: kit.serial('number'),
        kind: text('kind').$type<MailKind>().notNull(),
        organization_id: organization_id(),
        user_id: id<UserId>('user_id').references(() => users().id, cascade),
        data: json('data').$type<Record<string, string>>().notNull(),
        locale: text('locale').notNull(),
        attempts: int('attempts').notNull().default(0),
        created_at: created_at(),
        next_attempt_at: ms('next_attempt_at').notNull(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [
        index('mails_next').on(t.next_attempt_at),
        index('mails_awaited').on(t.next_attempt_at).where(sql.raw(IS_AWAITED)),
        index('mails_user').on(t.user_id),
      ],
    ),
  )

  /**
   * Outbox of back-channel logouts: one row for each ended session whose client has a logout URI. An expired
   * session has a row only if the client has `backchannel_logout_on_expiry`. A row keeps the content of the
   * logout token, because user, session and client may be deleted before the delivery.
   */
  const logouts = once(() =>
    table(
      'logouts',
      {
        number: kit.serial('number'),
        /** Id of the logout token. Each attempt signs a token with this id. */
        jti: text('jti').notNull(),
        client_id: text('client_id').notNull(),
        /**
         * `created_at` of the client. A later client with the same id has another `created_at`, so it gets
         * none of these logouts.
         */
        client_created_at: ms('client_created_at').notNull().default(0),
        /** Organization of the client. */
        organization_id: organization_id(),
        /** Slug of the organization when the session ended, used after the organization is deleted. */
        slug: text('slug').notNull().default(''),
        /** The client's logout URI when the session ended, used after the client is deleted. */
        uri: text('uri').notNull(),
        /** Signature algorithm. null stands for the server's default for ID tokens. */
        alg: text('alg').$type<SigningAlg>(),
        user_id: user_id(),
        session_id: id<SessionId>('session_id').notNull(),
        attempts: int('attempts').notNull().default(0),
        created_at: created_at(),
        next_attempt_at: ms('next_attempt_at').notNull(),
        expires_at: ms('expires_at').notNull(),
        /** null while the logout waits for delivery. */
        done_at: ms('done_at'),
        /**
         * Why the last attempt failed, or why the logout ended without an attempt. It is null before the
         * first failure and after a delivery.
         */
        failure: text('failure'),
      },
      t => [
        index('logouts_waiting').on(t.done_at, t.client_id, t.client_created_at, t.number),
        index('logouts_next').on(t.next_attempt_at),
        index('logouts_client').on(t.client_id, t.client_created_at, t.created_at, t.jti),
      ],
    ),
  )

  /**
   * Addresses that get the events of an organization in the order of `seq`. `cursor` is the `seq` up to which
   * all events were delivered, or skipped because the webhook does not receive their type.
   */
  const webhooks = once(() =>
    table(
      'webhooks',
      {
        id: id<WebhookId>('id').primaryKey(),
        organization_id: organization_id(),
        name: text('name').notNull(),
        url: text('url').notNull(),
        /** Event types; `*` stands for any text. */
        events: json('events').$type<string[]>().notNull(),
        all_organizations: bool('all_organizations').notNull(),
        enabled: bool('enabled').notNull(),
        signature: text('signature').$type<'v1' | 'v1a'>().notNull(),
        /** Sealed: a key for HMAC-SHA-256, or the seed of an Ed25519 key. */
        secret: bytes('secret').notNull(),
        /** The secret before the last rotation. Until `previous_until`, both secrets sign each event. */
        previous_secret: bytes('previous_secret'),
        previous_until: ms('previous_until'),
        cursor: int('cursor').notNull(),
        /**
         * Number of failed attempts to deliver the next event. `failing_since` is the beginning of these
         * failures, and `failure` is the error of the last attempt.
         */
        attempts: int('attempts').notNull().default(0),
        failing_since: ms('failing_since'),
        failure: text('failure'),
        disabled_reason: text('disabled_reason').$type<'gone' | 'failing'>(),
        /**
         * True while the webhook has nothing to deliver. A new event of one of its types makes the webhook
         * due.
         */
        idle: bool('idle').notNull(),
        next_attempt_at: ms('next_attempt_at').notNull(),
        created_at: created_at(),
        updated_at: updated_at(),
      },
      t => [
        uniqueIndex('webhooks_name').on(t.organization_id, t.name),
        index('webhooks_created').on(t.organization_id, t.created_at, t.id),
        index('webhooks_all_created').on(t.created_at, t.id),
        index('webhooks_next').on(t.next_attempt_at),
      ],
    ),
  )

  /** The latest attempts of each webhook. */
  const webhook_deliveries = once(() =>
    table(
      'webhook_deliveries',
      {
        number: kit.serial('number'),
        webhook_id: id<WebhookId>('webhook_id').notNull(),
        organization_id: organization_id(),
        event_id: id<EventId>('event_id').notNull(),
        event_type: text('event_type').notNull(),
        created_at: created_at(),
        /** Milliseconds until the answer or the failure. */
        duration: int('duration').notNull(),
        /** HTTP status; null without an answer. */
        status: int('status'),
        /** null when the event was delivered. */
        failure: text('failure'),
        /** Beginning of the answer's body. */
        answer: text('answer').notNull(),
      },
      t => [
        index('webhook_deliveries_webhook').on(t.webhook_id, t.number),
        index('webhook_deliveries_organization').on(t.organization_id),
        index('webhook_deliveries_event').on(t.event_id),
      ],
    ),
  )

  /**
   * Single-use links: links for the set-up of the first administrator (without a user), sign-in links made by
   * an administrator, and links sent by mail.
   */
  const links = once(() =>
    table(
      'links',
      {
        link_hash: text('link_hash').$type<SecretHash>().primaryKey(),
        kind: text('kind').$type<'set_up' | 'sign_in' | 'reset_password' | 'verify_email'>().notNull(),
        user_id: id<UserId>('user_id'),
        /** The address to verify. */
        email: text('email'),
        /**
         * Permissions of the administrator who made the link; null when the server made it. The link is
         * refused when its user has a permission that is not among them.
         */
        permissions: json('permissions').$type<string[]>(),
        organization_id: organization_id(),
        created_at: created_at(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('links_user').on(t.user_id), index('links_expires').on(t.expires_at)],
    ),
  )

  /**
   * Invitations for people who have no user yet and for users without a password. Each invitation has one
   * link.
   */
  const invitations = once(() =>
    table(
      'invitations',
      {
        id: id<InvitationId>('id').primaryKey(),
        organization_id: organization_id(),
        delivery: text('delivery').$type<'mail' | 'link'>().notNull(),
        /** True when the person requested the link on the registration page. */
        is_registration: bool('is_registration').notNull().default(false),
        /**
         * The user who was created together with the invitation, or who accepted an invitation for one
         * person. While `user_id` is null, accepting the invitation creates a user.
         */
        user_id: id<UserId>('user_id').references(() => users().id, cascade),
        /** The address that a mailed link verifies. */
        email: text('email'),
        /** null until the mail is sent. */
        link_hash: text('link_hash').$type<SecretHash>(),
        roles: json('roles').$type<string[]>().notNull(),
        groups: json('groups').$type<string[]>().notNull(),
        max_uses: int('max_uses').notNull(),
        uses: int('uses').notNull(),
        /** Language of the mail. */
        locale: text('locale').notNull(),
        /**
         * The administrator or client who made the invitation; null for the server itself. The invitation
         * grants at most the permissions that its creator has.
         */
        created_by: json('created_by').$type<{ kind: 'client' | 'user'; id: string } | null>(),
        created_at: created_at(),
        /** Milliseconds from the creation or the latest resend of the invitation to `expires_at`. */
        lifetime: ms('lifetime').notNull().default(0),
        expires_at: ms('expires_at').notNull(),
        withdrawn_at: ms('withdrawn_at'),
      },
      t => [
        uniqueIndex('invitations_link').on(t.link_hash),
        index('invitations_created').on(t.organization_id, t.created_at, t.id),
        index('invitations_all_created').on(t.created_at, t.id),
        index('invitations_expires').on(t.expires_at),
        index('invitations_user').on(t.user_id),
      ],
    ),
  )

  /** The users who accepted an invitation. */
  const invitation_uses = once(() =>
    table(
      'invitation_uses',
      {
        invitation_id: id<InvitationId>('invitation_id')
          .notNull()
          .references(() => invitations().id, cascade),
        user_id: user_id().references(() => users().id, cascade),
        accepted_at: ms('accepted_at').notNull(),
      },
      t => [
        primaryKey({ columns: [t.invitation_id, t.user_id] }),
        index('invitation_uses_user').on(t.user_id),
      ],
    ),
  )

  /** Sign-in codes sent by mail, at most one for each user. */
  const email_codes = once(() =>
    table(
      'email_codes',
      {
        user_id: id<UserId>('user_id')
          .primaryKey()
          .references(() => users().id, cascade),
        /** HMAC of the code, keyed with the instance key and bound to the request. */
        code_hash: text('code_hash').notNull(),
        /** The authorization request in which the code was requested. */
        request_hash: text('request_hash').$type<SecretHash>().notNull(),
        /** The time at which the code was requested. The code is made later, when its mail is sent. */
        requested_at: ms('requested_at').notNull().default(0),
        tries: int('tries').notNull(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('email_codes_expires').on(t.expires_at)],
    ),
  )

  /**
   * Disabled users who registered themselves or came from a provider, and wait for an administrator's
   * approval.
   */
  const waiting_users = once(() =>
    table(
      'waiting_users',
      {
        user_id: id<UserId>('user_id')
          .primaryKey()
          .references(() => users().id, cascade),
        organization_id: organization_id(),
        created_at: created_at(),
      },
      t => [
        index('waiting_users_created').on(t.organization_id, t.created_at, t.user_id),
        index('waiting_users_all_created').on(t.created_at, t.user_id),
      ],
    ),
  )

  /**
   * Counts that limit attempts, mails and recorded refusals, by account, mailbox, network, client or
   * invitation. They are stored so that they survive restarts.
   */
  const throttles = once(() =>
    table(
      'throttles',
      {
        key: text('key').primaryKey(),
        failures: int('failures').notNull(),
        window_started_at: ms('window_started_at').notNull(),
        blocked_until: ms('blocked_until').notNull(),
        expires_at: ms('expires_at').notNull(),
      },
      t => [index('throttles_expires').on(t.expires_at)],
    ),
  )

  /**
   * The audit log; a trigger refuses UPDATE. `subject_id` is the user whom the event concerns, if this user
   * is neither actor nor target. The event is deleted with this user.
   */
  const events = once(() =>
    table(
      'events',
      {
        /**
         * Order in which events were written. Timestamps can be equal, and decrease when the clock is set
         * back.
         */
        seq: kit.serial('seq'),
        /**
         * UUID version 7 that begins with `timestamp`, or with a time that is up to 100 ms later (`AHEAD` in
         * audit/list-store.ts). An event is found by this time, so `id` needs no index.
         */
        id: id<EventId>('id').notNull(),
        type: text('type').notNull(),
        actor_id: text('actor_id'),
        actor_email: text('actor_email'),
        target_id: text('target_id').notNull(),
        target_type: text('target_type').notNull(),
        organization_id: organization_id(),
        ip_address: text('ip_address').notNull(),
        user_agent: text('user_agent').notNull(),
        timestamp: ms('timestamp').notNull(),
        metadata: json('metadata').$type<Record<string, unknown>>().notNull(),
        subject_id: id<UserId>('subject_id'),
        /**
         * MAC over all other columns except `seq` (audit/record.ts). `gatehouse check` verifies it to detect
         * changes made outside the server.
         */
        mac: text('mac').notNull(),
      },
      t => [
        index('events_timestamp').on(t.timestamp, t.seq),
        index('events_organization').on(t.organization_id, t.timestamp, t.seq),
        index('events_organization_type').on(t.organization_id, t.type, t.timestamp, t.seq),
        index('events_type').on(t.type, t.timestamp, t.seq),
        index('events_actor').on(t.actor_id, t.timestamp, t.seq),
        index('events_target').on(t.target_id, t.timestamp, t.seq),
        index('events_address').on(t.ip_address, t.timestamp, t.seq),
        index('events_subject').on(t.subject_id).where(sql`subject_id IS NOT NULL`),
      ],
    ),
  )

  /**
   * Deleted objects whose dependent rows are still being removed in batches; all reads ignore those rows. A
   * row of the kind `attribute_index` is not a deletion: its id names an organization whose rows of
   * `user_attributes` are to be rebuilt.
   */
  const purges = once(() =>
    table('purges', {
      id: text('id').primaryKey(),
      kind: text('kind')
        .$type<
          'user' | 'organization' | 'role' | 'group' | 'client' | 'identity_provider' | 'attribute_index'
        >()
        .notNull(),
      /** The receiver of logouts of a deleted client. */
      logout: json('logout').$type<LogoutTarget>(),
      created_at: created_at(),
    }),
  )

  /** Totals by kind and organization, maintained by triggers, so that an unfiltered total needs no scan. */
  const counters = once(() =>
    table(
      'counters',
      { kind: text('kind').notNull(), organization_id: organization_id(), total: int('total').notNull() },
      t => [primaryKey({ columns: [t.kind, t.organization_id] })],
    ),
  )

  /**
   * Counts by hour (UTC, milliseconds) and organization. The organization '' stands for the whole instance. A
   * deleted user stays counted. The rows of a deleted organization are removed. On PostgreSQL each connection
   * has rows of its own (`slot`), so two transactions never change the same row. A count is the sum over the
   * slots.
   */
  const statistics = once(() =>
    table(
      'statistics',
      {
        organization_id: text('organization_id').$type<OrganizationId | ''>().notNull(),
        hour: ms('hour').notNull(),
        slot: int('slot').notNull(),
        logins: int('logins').notNull(),
        failed_logins: int('failed_logins').notNull(),
        new_users: int('new_users').notNull(),
        /** Number of users who were active in this hour. */
        active_users: int('active_users').notNull(),
        /** Number of users whose first activity of the day was in this hour. */
        daily_users: int('daily_users').notNull(),
        tokens: int('tokens').notNull(),
      },
      t => [primaryKey({ columns: [t.organization_id, t.hour, t.slot] })],
    ),
  )

  return lazily({
    settings,
    signing_keys,
    organizations,
    organization_assets,
    login_domains,
    roles,
    users,
    pictures,
    terms_acceptances,
    user_roles,
    user_attributes,
    groups,
    group_roles,
    group_members,
    clients,
    dynamic_clients,
    initial_access_tokens,
    apis,
    logins,
    sessions,
    authorization_codes,
    authorization_requests,
    stored_posts,
    consents,
    identity_providers,
    external_accounts,
    upstream_requests,
    factors,
    recovery_codes,
    used_assertions,
    devices,
    remembered_browsers,
    mails,
    logouts,
    webhooks,
    webhook_deliveries,
    links,
    invitations,
    invitation_uses,
    waiting_users,
    email_codes,
    throttles,
    events,
    purges,
    counters,
    statistics,
  })
}

/** The receiver of a client's logouts. A purge that an earlier version began lacks the optional fields. */
export interface LogoutTarget {
  client_created_at?: number
  organization_id: OrganizationId
  slug?: string
  uri: string
  alg: SigningAlg | null
}

export type Tables = ReturnType<typeof tables>
