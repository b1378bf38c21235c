-- Memory: a debt can be waived by a person, and says what came of it; what is remembered says where it came from, and is
-- found by its words.

-- The states have one more, which no database can add to a check of a column, so the table is made anew.
CREATE TABLE segments_anew (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- The owner of the session, here too so that a list of one person's debts reads nobody else's.
    person TEXT NOT NULL,
    owner TEXT NOT NULL,
    first_generation BIGINT NOT NULL CHECK (first_generation > 0),
    last_generation BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- While it is open, when it last grew.
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'sealed', 'committing', 'committed', 'waived')),
    attempt BIGINT NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0,
    node_id TEXT,
    error TEXT,
    receipt TEXT,
    settled_at BIGINT,
    UNIQUE (session_id, first_generation),
    UNIQUE (session_id, last_generation),
    CHECK (first_generation <= last_generation),
    CHECK ((state = 'committing') = (node_id IS NOT NULL)),
    CHECK ((state IN ('committed', 'waived')) = (settled_at IS NOT NULL))
) /*strict*/;
INSERT INTO segments_anew
    (id, session_id, person, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, node_id,
     error, settled_at)
SELECT m.id, m.session_id, s.owner, m.owner, m.first_generation, m.last_generation, m.created_at, m.due_at, m.state,
       m.attempt, m.fence, m.node_id, m.error, CASE WHEN m.state = 'committed' THEN m.due_at END
  FROM segments m JOIN sessions s ON s.id = m.session_id;
DROP TABLE segments;
ALTER TABLE segments_anew RENAME TO segments;
CREATE UNIQUE INDEX segments_one_open_per_session ON segments (session_id) WHERE state = 'open';
CREATE UNIQUE INDEX segments_one_committing_per_session ON segments (session_id) WHERE state = 'committing';
CREATE INDEX segments_due ON segments (owner, due_at) WHERE state = 'sealed';
CREATE INDEX segments_idle ON segments (due_at) WHERE state = 'open';
CREATE INDEX segments_held ON segments (node_id) WHERE node_id IS NOT NULL;
-- What is not paid yet: few, however much has been.
CREATE INDEX segments_dirty ON segments (session_id, first_generation, owner, state)
    WHERE state IN ('open', 'sealed', 'committing');
CREATE INDEX segments_owing ON segments (person, session_id) WHERE state IN ('open', 'sealed', 'committing');
CREATE INDEX segments_by_state ON segments (person, state, created_at, id);

-- A text was unique by itself, which a long one cannot be: no index of PostgreSQL takes it.  It is made anew for that too.
CREATE TABLE memories_anew (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'profile')),
    text TEXT NOT NULL,
    -- A digest of the text as it is compared: what differs only in case or punctuation is known already.
    folded TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    turn_id TEXT,
    segment_id TEXT,
    UNIQUE (owner, folded)
) /*strict*/;
-- What it is compared by is made behind this, by the program; until then each is its own.
INSERT INTO memories_anew (id, owner, text, folded, created_at, updated_at, turn_id)
SELECT id, owner, text, id, created_at, updated_at, turn_id FROM memories;
DROP TABLE memories;
ALTER TABLE memories_anew RENAME TO memories;
CREATE UNIQUE INDEX memories_one_profile ON memories (owner) WHERE kind = 'profile';
CREATE INDEX memories_by_owner ON memories (owner, created_at, id);
CREATE INDEX memories_recent ON memories (owner, updated_at, id);
CREATE INDEX memories_of_turn ON memories (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX memories_of_segment ON memories (segment_id) WHERE segment_id IS NOT NULL;

-- The words of each memory, under its owner: what is looked up for one person reads nobody else's, and both databases agree
-- on what a word is, because the program made them.
CREATE TABLE memory_words (
    owner TEXT NOT NULL,
    word TEXT NOT NULL,
    memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, word, memory_id)
) /*strict*/;
CREATE INDEX memory_words_of_memory ON memory_words (memory_id);

-- Segments whose facts are in the store already: a commit that is repeated after a crash extracts nothing twice.
CREATE TABLE absorbed (
    segment_id TEXT PRIMARY KEY REFERENCES segments (id) ON DELETE CASCADE,
    receipt TEXT NOT NULL,
    at BIGINT NOT NULL
) /*strict*/;

-- Segments that a provider was given once more, long after they had been paid to another.
CREATE TABLE replays (
    segment_id TEXT NOT NULL REFERENCES segments (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    receipt TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (segment_id, owner)
) /*strict*/;
