-- What drizzle-kit does not know: written by hand. Triggers refuse with RAISE(ABORT) alone: it undoes one statement,
-- RAISE(ROLLBACK) would take the writes of everybody in the same commit along.

-- The audit log is written once.
CREATE TRIGGER events_immutable BEFORE UPDATE ON events
BEGIN
  SELECT RAISE(ABORT, 'events are immutable');
END;

-- Counters. An organization is born with a row for each kind and takes them along when it goes: what is written or
-- removed for it afterwards (its rows are purged in batches) finds no row and counts nothing. The number of
-- organizations itself stands under the organization ''. A total of the instance is the sum over a kind.
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

-- Sessions that have not ended. Those that ran out and that the sweep has not marked yet are subtracted by the reader.
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

-- Users: their counts, and the index of their search_text. It stores no text of its own and refers to users.seq.
CREATE VIRTUAL TABLE users_search USING fts5(
  search_text, content = 'users', content_rowid = 'seq', columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
-- Its trigrams in order: those that begin with one or two letters are found here.
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

-- What user_roles repeats of its user.
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
