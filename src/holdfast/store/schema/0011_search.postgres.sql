-- Every term says whose it is and which part of the journal it is in, so that a search reads only the newest part that has
-- enough.  The words are kept, because no index of PostgreSQL holds a text that it cannot look at again.
DROP INDEX entries_search;
DROP FUNCTION searchable;
CREATE TABLE passages (
    id BIGINT PRIMARY KEY,
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    owner TEXT NOT NULL,
    words tsvector NOT NULL,
    UNIQUE (session_id, seq),
    FOREIGN KEY (session_id, seq) REFERENCES entries (session_id, seq) ON DELETE CASCADE
);
-- Without a list of what is to be added later: it would be read by every search, and written by whoever fills it up.
CREATE INDEX passages_words ON passages USING gin (words) WITH (fastupdate = off);
CREATE FUNCTION add_unsearched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO unsearched VALUES (new.id, new.session_id, new.seq); RETURN NULL; END
$$;
CREATE TRIGGER unsearched_added AFTER INSERT ON entries FOR EACH ROW WHEN (new.kind IN ('turn.accepted', 'turn.completed'))
    EXECUTE FUNCTION add_unsearched();
CREATE FUNCTION remove_unsearched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DELETE FROM unsearched WHERE id = old.id; RETURN NULL; END
$$;
CREATE TRIGGER unsearched_removed AFTER DELETE ON entries FOR EACH ROW WHEN (old.kind IN ('turn.accepted', 'turn.completed'))
    EXECUTE FUNCTION remove_unsearched();
ALTER TABLE title_words ALTER COLUMN word TYPE TEXT COLLATE "C";
