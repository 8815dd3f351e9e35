-- The search index merges its parts in steps of 24 pages, with every fifth user that is added or renamed and
-- every 31st that is deleted. Its own merges (`automerge`) change up to a thousand pages within one write,
-- while all other writes wait. Steps are rarer for deletions, because one statement deletes many users, which
-- are one part of the index. Their interval is a prime, so that a step comes even if the users of two
-- organizations were added by turns. https://www.sqlite.org/fts5.html#the_merge_command
INSERT INTO users_search (users_search, rank) VALUES ('automerge', 0);
INSERT INTO users_search (users_search, rank) VALUES ('usermerge', 6);

DROP TRIGGER users_insert;
DROP TRIGGER users_search_update;
DROP TRIGGER users_delete;

CREATE TRIGGER users_insert AFTER INSERT ON users
BEGIN
  UPDATE organizations SET user_count = user_count + 1 WHERE id = NEW.organization_id;
  UPDATE counters SET total = total + 1 WHERE kind = 'users' AND organization_id = NEW.organization_id;
  INSERT INTO users_search (rowid, search_text) VALUES (NEW.seq, NEW.search_text);
  INSERT INTO users_search (users_search, rank) SELECT 'merge', 24 WHERE NEW.seq % 5 = 0;
END;
CREATE TRIGGER users_search_update AFTER UPDATE OF search_text ON users WHEN NEW.search_text <> OLD.search_text
BEGIN
  INSERT INTO users_search (users_search, rowid, search_text) VALUES ('delete', OLD.seq, OLD.search_text);
  INSERT INTO users_search (rowid, search_text) VALUES (NEW.seq, NEW.search_text);
  INSERT INTO users_search (users_search, rank) SELECT 'merge', 24 WHERE NEW.seq % 5 = 0;
END;
CREATE TRIGGER users_delete AFTER DELETE ON users
BEGIN
  UPDATE organizations SET user_count = user_count - 1 WHERE id = OLD.organization_id;
  UPDATE counters SET total = total - 1 WHERE kind = 'users' AND organization_id = OLD.organization_id;
  INSERT INTO users_search (users_search, rowid, search_text) VALUES ('delete', OLD.seq, OLD.search_text);
  INSERT INTO users_search (users_search, rank) SELECT 'merge', 24 WHERE OLD.seq % 31 = 0;
END;
