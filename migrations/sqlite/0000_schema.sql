-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `settings` (
  `name` text PRIMARY KEY NOT NULL,
  `value` text NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;

CREATE TABLE `signing_keys` (
  `id` text PRIMARY KEY NOT NULL,
  `alg` text NOT NULL,
  `public_jwk` text NOT NULL,
  `private_key` blob NOT NULL,
  `created_at` integer NOT NULL,
  `active_at` integer NOT NULL,
  `retired_at` integer,
  `expires_at` integer
) STRICT;

CREATE TABLE `organizations` (
  `id` text PRIMARY KEY NOT NULL,
  `name` text NOT NULL,
  `slug` text NOT NULL,
  `display_name` text NOT NULL,
  `search_text` text NOT NULL,
  `settings` text NOT NULL,
  `user_count` integer DEFAULT 0 NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `organizations_slug` ON `organizations` (`slug`);
CREATE INDEX `organizations_created` ON `organizations` (`created_at`,`id`);

CREATE TABLE `organization_assets` (
  `organization_id` text NOT NULL,
  `hash` text NOT NULL,
  `type` text NOT NULL,
  `body` blob NOT NULL
) STRICT;
CREATE UNIQUE INDEX `organization_assets_hash` ON `organization_assets` (`organization_id`,`hash`);

CREATE TABLE `roles` (
  `id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `name` text NOT NULL,
  `description` text DEFAULT '' NOT NULL,
  `built_in` integer DEFAULT false NOT NULL,
  `permissions` text NOT NULL,
  `user_count` integer DEFAULT 0 NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `roles_name` ON `roles` (`organization_id`,`name`);
CREATE INDEX `roles_created` ON `roles` (`organization_id`,`created_at`,`id`);
CREATE INDEX `roles_all_created` ON `roles` (`created_at`,`id`);

CREATE TABLE `users` (
  `seq` integer PRIMARY KEY NOT NULL,
  `id` text NOT NULL,
  `organization_id` text NOT NULL,
  `username` text NOT NULL,
  `username_fold` text NOT NULL,
  `email` text NOT NULL,
  `email_fold` text NOT NULL,
  `pending_email` text,
  `first_name` text NOT NULL,
  `last_name` text NOT NULL,
  `search_text` text NOT NULL,
  `enabled` integer DEFAULT true NOT NULL,
  `email_verified` integer DEFAULT false NOT NULL,
  `attributes` text NOT NULL,
  `password_hash` text,
  `password_temporary` integer DEFAULT false NOT NULL,
  `password_changed_at` integer NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL,
  `last_login` integer
) STRICT;
CREATE UNIQUE INDEX `users_id` ON `users` (`id`);
CREATE UNIQUE INDEX `users_username` ON `users` (`organization_id`,`username_fold`);
CREATE UNIQUE INDEX `users_email` ON `users` (`organization_id`,`email_fold`);
CREATE INDEX `users_created` ON `users` (`organization_id`,`enabled`,`email_verified`,`seq`);
CREATE INDEX `users_sorted_username` ON `users` (`organization_id`,`enabled`,`email_verified`,`username_fold`,`seq`);
CREATE INDEX `users_sorted_email` ON `users` (`organization_id`,`enabled`,`email_verified`,`email_fold`,`seq`);
CREATE INDEX `users_last_login` ON `users` (`organization_id`,`enabled`,`email_verified`,`last_login`,`seq`);
CREATE INDEX `users_all_created` ON `users` (`enabled`,`email_verified`,`seq`);
CREATE INDEX `users_all_username` ON `users` (`enabled`,`email_verified`,`username_fold`,`seq`);
CREATE INDEX `users_all_email` ON `users` (`enabled`,`email_verified`,`email_fold`,`seq`);
CREATE INDEX `users_all_last_login` ON `users` (`enabled`,`email_verified`,`last_login`,`seq`);

CREATE TABLE `user_roles` (
  `number` integer PRIMARY KEY NOT NULL,
  `user_id` text NOT NULL,
  `role_id` text NOT NULL,
  `role_name` text NOT NULL,
  `organization_id` text NOT NULL,
  `seq` integer NOT NULL,
  `enabled` integer NOT NULL,
  `email_verified` integer NOT NULL,
  `username_fold` text NOT NULL,
  `email_fold` text NOT NULL,
  `last_login` integer,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE UNIQUE INDEX `user_roles_user` ON `user_roles` (`user_id`,`role_id`);
CREATE INDEX `user_roles_created` ON `user_roles` (`role_id`,`enabled`,`email_verified`,`seq`);
CREATE INDEX `user_roles_username` ON `user_roles` (`role_id`,`enabled`,`email_verified`,`username_fold`,`seq`);
CREATE INDEX `user_roles_email` ON `user_roles` (`role_id`,`enabled`,`email_verified`,`email_fold`,`seq`);
CREATE INDEX `user_roles_last_login` ON `user_roles` (`role_id`,`enabled`,`email_verified`,`last_login`,`seq`);
CREATE INDEX `user_roles_all_created` ON `user_roles` (`role_name`,`enabled`,`email_verified`,`seq`);
CREATE INDEX `user_roles_all_username` ON `user_roles` (`role_name`,`enabled`,`email_verified`,`username_fold`,`seq`);
CREATE INDEX `user_roles_all_email` ON `user_roles` (`role_name`,`enabled`,`email_verified`,`email_fold`,`seq`);
CREATE INDEX `user_roles_all_last_login` ON `user_roles` (`role_name`,`enabled`,`email_verified`,`last_login`,`seq`);

CREATE TABLE `groups` (
  `id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `name` text NOT NULL,
  `description` text DEFAULT '' NOT NULL,
  `member_count` integer DEFAULT 0 NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `groups_name` ON `groups` (`organization_id`,`name`);
CREATE INDEX `groups_created` ON `groups` (`organization_id`,`created_at`,`id`);
CREATE INDEX `groups_all_created` ON `groups` (`created_at`,`id`);

CREATE TABLE `group_roles` (
  `group_id` text NOT NULL,
  `role_id` text NOT NULL,
  PRIMARY KEY(`group_id`, `role_id`),
  FOREIGN KEY (`group_id`) REFERENCES `groups`(`id`) ON DELETE cascade,
  FOREIGN KEY (`role_id`) REFERENCES `roles`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `group_roles_role` ON `group_roles` (`role_id`);

CREATE TABLE `group_members` (
  `group_id` text NOT NULL,
  `user_id` text NOT NULL,
  PRIMARY KEY(`group_id`, `user_id`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `group_members_user` ON `group_members` (`user_id`);

CREATE TABLE `clients` (
  `client_id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `secret_hash` text,
  `name` text NOT NULL,
  `description` text DEFAULT '' NOT NULL,
  `type` text NOT NULL,
  `redirect_uris` text NOT NULL,
  `post_logout_redirect_uris` text NOT NULL,
  `web_origins` text NOT NULL,
  `grant_types` text NOT NULL,
  `scopes` text NOT NULL,
  `token_endpoint_auth_method` text NOT NULL,
  `access_token_ttl` integer NOT NULL,
  `refresh_token_ttl` integer NOT NULL,
  `capabilities` text NOT NULL,
  `consent_required` integer NOT NULL,
  `id_token_signed_response_alg` text,
  `access_token_signed_response_alg` text,
  `access_token_typ` text NOT NULL,
  `refresh_token_reuse_window` integer NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE INDEX `clients_created` ON `clients` (`organization_id`,`created_at`,`client_id`);
CREATE INDEX `clients_all_created` ON `clients` (`created_at`,`client_id`);

CREATE TABLE `logins` (
  `id` text PRIMARY KEY NOT NULL,
  `browser_hash` text NOT NULL,
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `auth_time` integer NOT NULL,
  `signed_in_at` integer NOT NULL,
  `acr` text NOT NULL,
  `amr` text NOT NULL,
  `ip_address` text NOT NULL,
  `user_agent` text NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `logins_browser` ON `logins` (`browser_hash`);
CREATE INDEX `logins_user` ON `logins` (`user_id`);
CREATE INDEX `logins_expires` ON `logins` (`expires_at`);

CREATE TABLE `sessions` (
  `id` text PRIMARY KEY NOT NULL,
  `user_id` text NOT NULL,
  `client_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `login_id` text NOT NULL,
  `scope` text NOT NULL,
  `ip_address` text NOT NULL,
  `user_agent` text NOT NULL,
  `location` text DEFAULT '' NOT NULL,
  `started_at` integer NOT NULL,
  `last_active_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  `due_at` integer NOT NULL,
  `ends_by` integer,
  `ended_at` integer,
  `refresh_hash` text,
  `tokens_valid_until` integer
) STRICT;
CREATE INDEX `sessions_user` ON `sessions` (`user_id`,`ended_at`,`id`);
CREATE INDEX `sessions_client` ON `sessions` (`client_id`,`ended_at`,`id`);
CREATE INDEX `sessions_organization` ON `sessions` (`organization_id`,`ended_at`,`id`);
CREATE INDEX `sessions_all` ON `sessions` (`ended_at`,`id`);
CREATE INDEX `sessions_login` ON `sessions` (`login_id`);
CREATE INDEX `sessions_due` ON `sessions` (`ended_at`,`due_at`);

CREATE TABLE `authorization_codes` (
  `code_hash` text PRIMARY KEY NOT NULL,
  `client_id` text NOT NULL,
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `login_id` text NOT NULL,
  `redirect_uri` text NOT NULL,
  `scope` text NOT NULL,
  `nonce` text NOT NULL,
  `code_challenge` text NOT NULL,
  `auth_time` integer NOT NULL,
  `acr` text NOT NULL,
  `amr` text NOT NULL,
  `ip_address` text NOT NULL,
  `user_agent` text NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  `consumed_at` integer,
  `session_id` text
) STRICT;
CREATE INDEX `authorization_codes_user` ON `authorization_codes` (`user_id`);
CREATE INDEX `authorization_codes_expires` ON `authorization_codes` (`expires_at`);

CREATE TABLE `authorization_requests` (
  `request_hash` text PRIMARY KEY NOT NULL,
  `browser_hash` text NOT NULL,
  `client_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `request` text NOT NULL,
  `login_id` text,
  `selected` integer DEFAULT false NOT NULL,
  `proof` text,
  `round` integer DEFAULT 0 NOT NULL,
  `enrolled` integer DEFAULT false NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `authorization_requests_browser` ON `authorization_requests` (`browser_hash`);
CREATE INDEX `authorization_requests_expires` ON `authorization_requests` (`expires_at`);

CREATE TABLE `stored_posts` (
  `handle_hash` text PRIMARY KEY NOT NULL,
  `kind` text NOT NULL,
  `body` text NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `stored_posts_expires` ON `stored_posts` (`expires_at`);

CREATE TABLE `consents` (
  `user_id` text NOT NULL,
  `client_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `scopes` text NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL,
  PRIMARY KEY(`user_id`, `client_id`)
) STRICT, WITHOUT ROWID;
CREATE INDEX `consents_client` ON `consents` (`client_id`);

CREATE TABLE `identity_providers` (
  `id` text PRIMARY KEY NOT NULL,
  `alias` text NOT NULL,
  `name` text NOT NULL,
  `type` text NOT NULL,
  `organization_id` text NOT NULL,
  `enabled` integer NOT NULL,
  `allow_registration` integer NOT NULL,
  `trust_email` integer NOT NULL,
  `default_role_ids` text NOT NULL,
  `attribute_mapping` text NOT NULL,
  `settings` text NOT NULL,
  `client_secret` blob,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `identity_providers_alias` ON `identity_providers` (`alias`);
CREATE INDEX `identity_providers_created` ON `identity_providers` (`organization_id`,`created_at`,`id`);
CREATE INDEX `identity_providers_all_created` ON `identity_providers` (`created_at`,`id`);

CREATE TABLE `external_accounts` (
  `provider_id` text NOT NULL,
  `subject` text NOT NULL,
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `label` text NOT NULL,
  `created_at` integer NOT NULL,
  PRIMARY KEY(`provider_id`, `subject`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `external_accounts_user` ON `external_accounts` (`user_id`);

CREATE TABLE `upstream_requests` (
  `state_hash` text PRIMARY KEY NOT NULL,
  `step` text NOT NULL,
  `browser_hash` text NOT NULL,
  `provider_id` text NOT NULL,
  `sealed` blob NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `upstream_requests_expires` ON `upstream_requests` (`expires_at`);

CREATE TABLE `factors` (
  `id` text PRIMARY KEY NOT NULL,
  `user_id` text NOT NULL,
  `type` text NOT NULL,
  `name` text NOT NULL,
  `secret` blob,
  `last_step` integer DEFAULT 0 NOT NULL,
  `credential_id` text,
  `public_key` blob,
  `sign_count` integer DEFAULT 0 NOT NULL,
  `transports` text NOT NULL,
  `synced` integer DEFAULT false NOT NULL,
  `created_at` integer NOT NULL,
  `last_used_at` integer,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE INDEX `factors_user` ON `factors` (`user_id`);
CREATE UNIQUE INDEX `factors_credential` ON `factors` (`credential_id`);

CREATE TABLE `recovery_codes` (
  `user_id` text NOT NULL,
  `code_hash` text NOT NULL,
  PRIMARY KEY(`user_id`, `code_hash`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;

CREATE TABLE `used_assertions` (
  `assertion_hash` text PRIMARY KEY NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `used_assertions_expires` ON `used_assertions` (`expires_at`);

CREATE TABLE `devices` (
  `user_id` text NOT NULL,
  `device_hash` text NOT NULL,
  `last_seen_at` integer NOT NULL,
  PRIMARY KEY(`user_id`, `device_hash`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `devices_hash` ON `devices` (`device_hash`);
CREATE INDEX `devices_seen` ON `devices` (`last_seen_at`);

CREATE TABLE `mails` (
  `number` integer PRIMARY KEY NOT NULL,
  `kind` text NOT NULL,
  `organization_id` text NOT NULL,
  `user_id` text,
  `data` text NOT NULL,
  `locale` text NOT NULL,
  `attempts` integer DEFAULT 0 NOT NULL,
  `created_at` integer NOT NULL,
  `next_attempt_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE INDEX `mails_next` ON `mails` (`next_attempt_at`);
CREATE INDEX `mails_user` ON `mails` (`user_id`);

CREATE TABLE `links` (
  `link_hash` text PRIMARY KEY NOT NULL,
  `kind` text NOT NULL,
  `user_id` text,
  `email` text,
  `permissions` text,
  `organization_id` text NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `links_user` ON `links` (`user_id`);
CREATE INDEX `links_expires` ON `links` (`expires_at`);

CREATE TABLE `throttles` (
  `key` text PRIMARY KEY NOT NULL,
  `failures` integer NOT NULL,
  `window_started_at` integer NOT NULL,
  `blocked_until` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `throttles_expires` ON `throttles` (`expires_at`);

CREATE TABLE `events` (
  `seq` integer PRIMARY KEY NOT NULL,
  `id` text NOT NULL,
  `type` text NOT NULL,
  `actor_id` text,
  `actor_email` text,
  `target_id` text NOT NULL,
  `target_type` text NOT NULL,
  `organization_id` text NOT NULL,
  `ip_address` text NOT NULL,
  `user_agent` text NOT NULL,
  `timestamp` integer NOT NULL,
  `metadata` text NOT NULL,
  `subject_id` text,
  `mac` text NOT NULL
) STRICT;
CREATE INDEX `events_timestamp` ON `events` (`timestamp`,`seq`);
CREATE INDEX `events_organization` ON `events` (`organization_id`,`timestamp`,`seq`);
CREATE INDEX `events_organization_type` ON `events` (`organization_id`,`type`,`timestamp`,`seq`);
CREATE INDEX `events_type` ON `events` (`type`,`timestamp`,`seq`);
CREATE INDEX `events_actor` ON `events` (`actor_id`,`timestamp`,`seq`);
CREATE INDEX `events_target` ON `events` (`target_id`,`timestamp`,`seq`);
CREATE INDEX `events_address` ON `events` (`ip_address`,`timestamp`,`seq`);
CREATE INDEX `events_subject` ON `events` (`subject_id`) WHERE subject_id IS NOT NULL;

CREATE TABLE `purges` (
  `id` text PRIMARY KEY NOT NULL,
  `kind` text NOT NULL,
  `created_at` integer NOT NULL
) STRICT;

CREATE TABLE `counters` (
  `kind` text NOT NULL,
  `organization_id` text NOT NULL,
  `total` integer NOT NULL,
  PRIMARY KEY(`kind`, `organization_id`)
) STRICT, WITHOUT ROWID;

-- Statements that drizzle-kit cannot generate, written by hand. Triggers refuse with RAISE(ABORT), which
-- undoes one statement; RAISE(ROLLBACK) would undo all writes of the same commit.

-- Audit events cannot be updated.
CREATE TRIGGER events_immutable BEFORE UPDATE ON events
BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;

-- Counters. A new organization gets a row of each kind, and its deletion removes them, after which changes to
-- its data (removed in batches) find no row and count nothing. The number of organizations is stored under
-- the organization ''. A total of the instance is the sum over a kind.
INSERT INTO counters (kind, organization_id, total) VALUES ('organizations', '', 0);

CREATE TRIGGER organizations_insert AFTER INSERT ON organizations
BEGIN
  INSERT INTO counters (kind, organization_id, total)
  VALUES ('users', NEW.id, 0), ('roles', NEW.id, 0), ('groups', NEW.id, 0), ('clients', NEW.id, 0),
    ('sessions', NEW.id, 0), ('events', NEW.id, 0);
  UPDATE counters SET total = total + 1 WHERE kind = 'organizations' AND organization_id = '';
END;
CREATE TRIGGER organizations_delete AFTER DELETE ON organizations
BEGIN
  DELETE FROM counters
  WHERE kind IN ('users', 'roles', 'groups', 'clients', 'sessions', 'events') AND organization_id = OLD.id;
  UPDATE counters SET total = total - 1 WHERE kind = 'organizations' AND organization_id = '';
END;

CREATE TRIGGER roles_insert AFTER INSERT ON roles
BEGIN
  UPDATE counters SET total = total + 1 WHERE kind = 'roles' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER roles_delete AFTER DELETE ON roles
BEGIN
  UPDATE counters SET total = total - 1 WHERE kind = 'roles' AND organization_id = OLD.organization_id;
END;

CREATE TRIGGER groups_insert AFTER INSERT ON groups
BEGIN
  UPDATE counters SET total = total + 1 WHERE kind = 'groups' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER groups_delete AFTER DELETE ON groups
BEGIN
  UPDATE counters SET total = total - 1 WHERE kind = 'groups' AND organization_id = OLD.organization_id;
END;

CREATE TRIGGER clients_insert AFTER INSERT ON clients
BEGIN
  UPDATE counters SET total = total + 1 WHERE kind = 'clients' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER clients_delete AFTER DELETE ON clients
BEGIN
  UPDATE counters SET total = total - 1 WHERE kind = 'clients' AND organization_id = OLD.organization_id;
END;

CREATE TRIGGER events_insert AFTER INSERT ON events
BEGIN
  UPDATE counters SET total = total + 1 WHERE kind = 'events' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER events_delete AFTER DELETE ON events
BEGIN
  UPDATE counters SET total = total - 1 WHERE kind = 'events' AND organization_id = OLD.organization_id;
END;

-- Sessions that have not ended. The reader subtracts expired sessions that the sweep has not marked yet.
CREATE TRIGGER sessions_insert AFTER INSERT ON sessions WHEN NEW.ended_at IS NULL
BEGIN
  UPDATE counters SET total = total + 1 WHERE kind = 'sessions' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER sessions_end AFTER UPDATE OF ended_at ON sessions
WHEN (OLD.ended_at IS NULL) <> (NEW.ended_at IS NULL)
BEGIN
  UPDATE counters SET total = total + (NEW.ended_at IS NULL) - (OLD.ended_at IS NULL)
  WHERE kind = 'sessions' AND organization_id = NEW.organization_id;
END;
CREATE TRIGGER sessions_delete AFTER DELETE ON sessions WHEN OLD.ended_at IS NULL
BEGIN
  UPDATE counters SET total = total - 1 WHERE kind = 'sessions' AND organization_id = OLD.organization_id;
END;

-- Counts of users, and the index of their search_text. It stores no text of its own and refers to users.seq.
CREATE VIRTUAL TABLE users_search USING fts5(
  search_text, content = 'users', content_rowid = 'seq', columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
-- The index's trigrams in order, to find those that begin with one or two letters.
CREATE VIRTUAL TABLE users_search_terms USING fts5vocab(users_search, instance);

CREATE TRIGGER users_insert AFTER INSERT ON users
BEGIN
  UPDATE organizations SET user_count = user_count + 1 WHERE id = NEW.organization_id;
  UPDATE counters SET total = total + 1 WHERE kind = 'users' AND organization_id = NEW.organization_id;
  INSERT INTO users_search (rowid, search_text) VALUES (NEW.seq, NEW.search_text);
END;
CREATE TRIGGER users_search_update AFTER UPDATE OF search_text ON users WHEN NEW.search_text <> OLD.search_text
BEGIN
  INSERT INTO users_search (users_search, rowid, search_text) VALUES ('delete', OLD.seq, OLD.search_text);
  INSERT INTO users_search (rowid, search_text) VALUES (NEW.seq, NEW.search_text);
END;
CREATE TRIGGER users_delete AFTER DELETE ON users
BEGIN
  UPDATE organizations SET user_count = user_count - 1 WHERE id = OLD.organization_id;
  UPDATE counters SET total = total - 1 WHERE kind = 'users' AND organization_id = OLD.organization_id;
  INSERT INTO users_search (users_search, rowid, search_text) VALUES ('delete', OLD.seq, OLD.search_text);
END;

-- Values of the user repeated in user_roles.
CREATE TRIGGER users_roles_update
AFTER UPDATE OF enabled, email_verified, username_fold, email_fold, last_login ON users
BEGIN
  UPDATE user_roles SET enabled = NEW.enabled, email_verified = NEW.email_verified,
    username_fold = NEW.username_fold, email_fold = NEW.email_fold, last_login = NEW.last_login
  WHERE user_id = NEW.id;
END;

CREATE TRIGGER user_roles_insert AFTER INSERT ON user_roles
BEGIN
  UPDATE roles SET user_count = user_count + 1 WHERE id = NEW.role_id;
END;
CREATE TRIGGER user_roles_delete AFTER DELETE ON user_roles
BEGIN
  UPDATE roles SET user_count = user_count - 1 WHERE id = OLD.role_id;
END;

CREATE TRIGGER group_members_insert AFTER INSERT ON group_members
BEGIN
  UPDATE groups SET member_count = member_count + 1 WHERE id = NEW.group_id;
END;
CREATE TRIGGER group_members_delete AFTER DELETE ON group_members
BEGIN
  UPDATE groups SET member_count = member_count - 1 WHERE id = OLD.group_id;
END;
