-- Memory: a debt can be waived by a person, and says what came of it; what is remembered says where it came from.

-- The states have one more, which no database can add to a check of a column.
CREATE TABLE segments_with_waivers (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    first_generation BIGINT NOT NULL CHECK (first_generation > 0),
    last_generation BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
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
INSERT INTO segments_with_waivers
    (id, session_id, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, node_id, error,
     settled_at)
SELECT id, session_id, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, node_id, error,
       CASE WHEN state = 'committed' THEN due_at END
  FROM segments;
DROP TABLE segments;
ALTER TABLE segments_with_waivers RENAME TO segments;
CREATE UNIQUE INDEX segments_one_open_per_session ON segments (session_id) WHERE state = 'open';
CREATE UNIQUE INDEX segments_one_committing_per_session ON segments (session_id) WHERE state = 'committing';
CREATE INDEX segments_due ON segments (owner, due_at) WHERE state = 'sealed';
CREATE INDEX segments_held ON segments (node_id) WHERE node_id IS NOT NULL;

ALTER TABLE memories ADD COLUMN kind TEXT NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'profile'));
-- The text as it is compared: what differs only in case or punctuation is known already.
ALTER TABLE memories ADD COLUMN folded TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN segment_id TEXT;
UPDATE memories SET folded = text;
CREATE UNIQUE INDEX memories_once ON memories (owner, folded);
CREATE UNIQUE INDEX memories_one_profile ON memories (owner) WHERE kind = 'profile';
CREATE INDEX memories_recent ON memories (owner, updated_at, id);

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
