CREATE VIRTUAL TABLE memory_words USING fts5 (id UNINDEXED, text, tokenize = 'unicode61 remove_diacritics 0');
INSERT INTO memory_words (id, text) SELECT id, text FROM memories;
CREATE TRIGGER memory_words_added AFTER INSERT ON memories
BEGIN
    INSERT INTO memory_words (id, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER memory_words_changed AFTER UPDATE OF text ON memories
BEGIN
    UPDATE memory_words SET text = new.text WHERE id = new.id;
END;
CREATE TRIGGER memory_words_removed AFTER DELETE ON memories
BEGIN
    DELETE FROM memory_words WHERE id = old.id;
END;
