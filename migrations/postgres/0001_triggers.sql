-- What drizzle-kit does not know: written by hand. Triggers run once a statement: a batch of events counts once.

-- Every write holds this table in the weakest mode; one that others have kept from committing holds it alone.
CREATE TABLE turns ();

-- The audit log is written once.
CREATE FUNCTION events_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are immutable';
END $$;
CREATE TRIGGER events_immutable BEFORE UPDATE ON events FOR EACH STATEMENT EXECUTE FUNCTION events_immutable();

-- Counters. Two transactions that count the same must not meet in one row: each connection that writes has a slot of its
-- own, and a total is the sum over them. An organization is born with a row for each kind (slot -1, which nobody updates)
-- and takes all of them along when it goes: what is written or removed for it afterwards (its rows are purged in batches)
-- finds no row and counts nothing. The number of organizations itself stands under the organization ''.
CREATE TABLE counter_slots (
  kind text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  slot int NOT NULL,
  total bigint NOT NULL,
  PRIMARY KEY (kind, organization_id, slot)
) WITH (fillfactor = 50);
INSERT INTO counter_slots VALUES ('organizations', '', -1, 0);

CREATE VIEW counters AS
SELECT kind, organization_id, sum(total)::bigint AS total FROM counter_slots GROUP BY kind, organization_id;

-- A rehearsal is a transaction that is rolled back in the end (postgres-writer.ts says which one is). It counts nothing: rows
-- of totals that one transaction updates a thousand times get slower each time, and others would wait for them.
CREATE FUNCTION is_rehearsal() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(current_setting('gatehouse.rehearsal', true), '') = 'on'
$$;

-- plpgsql keeps the plans, which cost more than the statements do. A row of our own says that there is an organization.
CREATE FUNCTION count_rows(counted text, organization text, change bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own int := coalesce(nullif(current_setting('gatehouse.slot', true), ''), '0');
BEGIN
  IF is_rehearsal() THEN RETURN; END IF;
  UPDATE counter_slots SET total = total + change
  WHERE kind = counted AND organization_id = organization AND slot = own;
  IF NOT FOUND THEN
    INSERT INTO counter_slots
    SELECT counted, organization, own, change FROM counter_slots
    WHERE kind = counted AND organization_id = organization AND slot = -1
    ON CONFLICT (kind, organization_id, slot) DO UPDATE SET total = counter_slots.total + excluded.total;
  END IF;
END $$;

-- What the rows of a statement add to totals: they came or they went.
CREATE FUNCTION sign_of(operation text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE operation WHEN 'INSERT' THEN 1 ELSE -1 END
$$;

CREATE FUNCTION rows_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_rows(TG_TABLE_NAME, organization_id, sign_of(TG_OP) * count(*)) FROM changed GROUP BY organization_id;
  RETURN NULL;
END $$;

CREATE TRIGGER roles_insert AFTER INSERT ON roles
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER roles_delete AFTER DELETE ON roles
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER groups_insert AFTER INSERT ON groups
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER groups_delete AFTER DELETE ON groups
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER clients_insert AFTER INSERT ON clients
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER clients_delete AFTER DELETE ON clients
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER events_insert AFTER INSERT ON events
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();
CREATE TRIGGER events_delete AFTER DELETE ON events
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rows_count();

CREATE FUNCTION organizations_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO counter_slots
  SELECT kind, id, -1, 0
  FROM changed, unnest(ARRAY['users', 'roles', 'groups', 'clients', 'sessions', 'events']) AS kind;
  PERFORM count_rows('organizations', '', count(*)) FROM changed;
  RETURN NULL;
END $$;
CREATE TRIGGER organizations_insert AFTER INSERT ON organizations
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION organizations_insert();
CREATE FUNCTION organizations_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM counter_slots
  WHERE kind IN ('users', 'roles', 'groups', 'clients', 'sessions', 'events')
    AND organization_id IN (SELECT id FROM changed);
  PERFORM count_rows('organizations', '', -count(*)) FROM changed;
  RETURN NULL;
END $$;
CREATE TRIGGER organizations_delete AFTER DELETE ON organizations
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION organizations_delete();

-- Sessions that have not ended. Those that ran out and that the sweep has not marked yet are subtracted by the reader.
-- Touching a session, the most frequent update, runs nothing: it is a trigger of the rows in which `ended_at` changes.
CREATE FUNCTION sessions_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_rows('sessions', NEW.organization_id, (NEW.ended_at IS NULL)::int - (OLD.ended_at IS NULL)::int);
  RETURN NULL;
END $$;
CREATE TRIGGER sessions_end AFTER UPDATE OF ended_at ON sessions FOR EACH ROW
WHEN ((OLD.ended_at IS NULL) <> (NEW.ended_at IS NULL)) EXECUTE FUNCTION sessions_end();
CREATE FUNCTION sessions_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_rows('sessions', organization_id, sign_of(TG_OP) * count(*))
  FROM changed WHERE ended_at IS NULL GROUP BY organization_id;
  RETURN NULL;
END $$;
CREATE TRIGGER sessions_insert AFTER INSERT ON sessions
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION sessions_count();
CREATE TRIGGER sessions_delete AFTER DELETE ON sessions
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION sessions_count();

-- Users: their counts, and the index of their search_text.
CREATE FUNCTION users_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE organizations SET user_count = user_count + sign_of(TG_OP) * changes
  FROM (SELECT organization_id, count(*) AS changes FROM changed GROUP BY organization_id) AS counted
  WHERE id = organization_id;
  PERFORM count_rows('users', organization_id, sign_of(TG_OP) * count(*)) FROM changed GROUP BY organization_id;
  RETURN NULL;
END $$;
CREATE TRIGGER users_insert AFTER INSERT ON users
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION users_count();
CREATE TRIGGER users_delete AFTER DELETE ON users
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION users_count();

CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX users_search ON users USING gin (search_text gin_trgm_ops);

-- What user_roles repeats of its user.
CREATE FUNCTION users_roles_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE user_roles SET enabled = NEW.enabled, email_verified = NEW.email_verified,
    username_fold = NEW.username_fold, email_fold = NEW.email_fold, last_login = NEW.last_login
  WHERE user_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER users_roles_update
AFTER UPDATE OF enabled, email_verified, username_fold, email_fold, last_login ON users
FOR EACH ROW EXECUTE FUNCTION users_roles_update();

CREATE FUNCTION user_roles_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE roles SET user_count = user_count + sign_of(TG_OP) * changes
  FROM (SELECT role_id, count(*) AS changes FROM changed GROUP BY role_id) AS counted
  WHERE id = role_id;
  RETURN NULL;
END $$;
CREATE TRIGGER user_roles_insert AFTER INSERT ON user_roles
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION user_roles_count();
CREATE TRIGGER user_roles_delete AFTER DELETE ON user_roles
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION user_roles_count();

CREATE FUNCTION group_members_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE groups SET member_count = member_count + sign_of(TG_OP) * changes
  FROM (SELECT group_id, count(*) AS changes FROM changed GROUP BY group_id) AS counted
  WHERE id = group_id;
  RETURN NULL;
END $$;
CREATE TRIGGER group_members_insert AFTER INSERT ON group_members
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION group_members_count();
CREATE TRIGGER group_members_delete AFTER DELETE ON group_members
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION group_members_count();
