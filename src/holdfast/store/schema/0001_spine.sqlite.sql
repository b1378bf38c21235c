-- Full-text search without a second copy of the text: only the index is kept, and triggers keep it true.
CREATE VIRTUAL TABLE passages USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
);
CREATE TRIGGER passages_added AFTER INSERT ON entries WHEN new.kind IN ('turn.accepted', 'turn.completed')
BEGIN
    INSERT INTO passages (rowid, text) VALUES (new.id, new.data ->> '$.text');
END;
CREATE TRIGGER passages_removed AFTER DELETE ON entries WHEN old.kind IN ('turn.accepted', 'turn.completed')
BEGIN
    DELETE FROM passages WHERE rowid = old.id;
END;
