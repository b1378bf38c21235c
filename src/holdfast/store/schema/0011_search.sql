-- Search by how words begin, in messages, answers and titles.  Words are indexed in the background: what waits for it is
-- listed here, and all that there is waits for it now.
CREATE TABLE unsearched (
    id BIGINT PRIMARY KEY,
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL
) /*strict*/;
INSERT INTO unsearched SELECT id, session_id, seq FROM entries WHERE kind IN ('turn.accepted', 'turn.completed');
CREATE TABLE title_words (
    owner TEXT NOT NULL,
    word TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, word, session_id)
) /*strict*/;
CREATE INDEX title_words_of_session ON title_words (session_id, word);
