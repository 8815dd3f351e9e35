-- A rehearsal is a transaction that is rolled back in the end (postgres-writer.ts says which one is). It counts nothing: rows
-- of totals that one transaction updates a thousand times get slower each time, and others would wait for them.
CREATE FUNCTION is_rehearsal() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(current_setting('gatehouse.rehearsal', true), '') = 'on'
$$;

CREATE OR REPLACE FUNCTION count_rows(counted text, organization text, change bigint) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION users_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE organizations SET user_count = user_count + added
  FROM (SELECT organization_id, count(*) AS added FROM changed GROUP BY organization_id) AS counted
  WHERE id = organization_id;
  PERFORM count_rows('users', organization_id, count(*)) FROM changed GROUP BY organization_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION users_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE organizations SET user_count = user_count - gone
  FROM (SELECT organization_id, count(*) AS gone FROM changed GROUP BY organization_id) AS counted
  WHERE id = organization_id;
  PERFORM count_rows('users', organization_id, -count(*)) FROM changed GROUP BY organization_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION user_roles_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE roles SET user_count = user_count + CASE TG_OP WHEN 'INSERT' THEN changes ELSE -changes END
  FROM (SELECT role_id, count(*) AS changes FROM changed GROUP BY role_id) AS counted
  WHERE id = role_id;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION group_members_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF is_rehearsal() THEN RETURN NULL; END IF;
  UPDATE groups SET member_count = member_count + CASE TG_OP WHEN 'INSERT' THEN changes ELSE -changes END
  FROM (SELECT group_id, count(*) AS changes FROM changed GROUP BY group_id) AS counted
  WHERE id = group_id;
  RETURN NULL;
END $$;
