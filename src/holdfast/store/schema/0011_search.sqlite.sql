-- Every term says whose it is and which part of the journal it is in, so that a search reads only the newest part that has
-- enough.  Only the index is kept, never the text.
DROP TRIGGER passages_added;
DROP TRIGGER passages_removed;
DROP TABLE passages;
CREATE VIRTUAL TABLE passages USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE TRIGGER unsearched_added AFTER INSERT ON entries WHEN new.kind IN ('turn.accepted', 'turn.completed')
BEGIN
    INSERT INTO unsearched VALUES (new.id, new.session_id, new.seq);
END;
CREATE TRIGGER passages_removed AFTER DELETE ON entries WHEN old.kind IN ('turn.accepted', 'turn.completed')
BEGIN
    DELETE FROM passages WHERE rowid = old.id;
    DELETE FROM unsearched WHERE id = old.id;
END;
