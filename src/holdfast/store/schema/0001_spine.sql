-- The spine: everything Holdfast promises, as rows.  What must never be is refused here, whoever asks.
-- Columns ending in _at are milliseconds since 1970 (UTC); flags are 0 or 1.

CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('alive', 'dead')),
    beat BIGINT NOT NULL DEFAULT 0,
    joined_at BIGINT NOT NULL
) /*strict*/;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    channel TEXT NOT NULL,
    owner TEXT NOT NULL,
    one_shot BIGINT NOT NULL CHECK (one_shot IN (0, 1)),
    source TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'suspended', 'ended')),
    title TEXT,
    parent_id TEXT,
    auto_reset_reason TEXT,
    end_reason TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    seq BIGINT NOT NULL DEFAULT 0 CHECK (seq >= 0),
    turns BIGINT NOT NULL DEFAULT 0 CHECK (turns >= 0),
    generation BIGINT NOT NULL DEFAULT 0 CHECK (generation BETWEEN 0 AND turns),
    strikes BIGINT NOT NULL DEFAULT 0 CHECK (strikes >= 0),
    CHECK ((state = 'ended' AND ended_at IS NOT NULL AND end_reason IS NOT NULL)
        OR (state <> 'ended' AND ended_at IS NULL AND end_reason IS NULL))
) /*strict*/;
-- A message finds exactly one session, however many arrive at once.
CREATE UNIQUE INDEX sessions_one_open_per_key ON sessions (owner, key) WHERE state = 'open';
CREATE INDEX sessions_by_key ON sessions (owner, key, id);
CREATE INDEX sessions_by_update ON sessions (owner, updated_at, id);
CREATE INDEX sessions_ended ON sessions (channel, ended_at) WHERE state = 'ended';

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    ordinal BIGINT NOT NULL CHECK (ordinal > 0),
    accepted_at BIGINT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('conversation', 'detached', 'synchronous')),
    delivers_later BIGINT NOT NULL CHECK (delivers_later IN (0, 1)),
    remembers BIGINT NOT NULL CHECK (remembers IN (0, 1)),
    reply_to TEXT,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN
        ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'interrupted')),
    attempt BIGINT NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    nth BIGINT NOT NULL DEFAULT 0 CHECK (nth >= 0),
    fence BIGINT NOT NULL DEFAULT 0 CHECK (fence >= 0),
    node_id TEXT,
    cause TEXT,
    error TEXT,
    generation BIGINT,
    started_at BIGINT,
    answered_at BIGINT,
    UNIQUE (session_id, ordinal),
    UNIQUE (session_id, generation),
    -- A running turn has a node to answer for it; one at rest has none.
    CHECK (state <> 'running' OR node_id IS NOT NULL),
    CHECK (state IN ('queued', 'running') OR node_id IS NULL),
    CHECK (state NOT IN ('interrupted', 'cancelled') OR cause IS NOT NULL),
    CHECK (state NOT IN ('completed', 'failed') OR answered_at IS NOT NULL),
    CHECK (state = 'completed' OR generation IS NULL)
) /*strict*/;
-- One live turn per session: the database refuses a second, whoever asks.
CREATE UNIQUE INDEX turns_one_live_per_session ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_in_flight ON turns (session_id, ordinal) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX turns_claimable ON turns (accepted_at, id) WHERE state = 'queued' AND node_id IS NULL;
CREATE INDEX turns_held ON turns (node_id) WHERE node_id IS NOT NULL;

-- Outlives the turns it names, so that a late repeat is still recognised.
CREATE TABLE dedupe (
    key TEXT PRIMARY KEY,
    body_hash TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    accepted_at BIGINT NOT NULL
) /*strict*/;
CREATE INDEX dedupe_by_age ON dedupe (accepted_at);

CREATE TABLE cursors (
    channel TEXT PRIMARY KEY,
    position TEXT NOT NULL
) /*strict*/;

CREATE TABLE entries (
    id /*rowid*/,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL CHECK (seq > 0),
    turn_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    nth BIGINT,
    kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    data /*json*/ NOT NULL,
    UNIQUE (session_id, seq),
    UNIQUE (turn_id, attempt, nth)
) /*strict*/;

CREATE TABLE tool_calls (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    name TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('pure', 'keyed', 'effectful')),
    args TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'awaiting_approval', 'started', 'ok', 'error', 'unknown')),
    starts BIGINT NOT NULL DEFAULT 0,
    result TEXT,
    PRIMARY KEY (turn_id, id),
    -- An effect on the world never starts twice: what became of the first is decided, not retried.
    CONSTRAINT effectful_starts_once CHECK (effect <> 'effectful' OR starts <= 1)
) /*strict*/;

CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    target TEXT NOT NULL,
    part BIGINT NOT NULL CHECK (part > 0),
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN
        ('pending', 'sending', 'retry', 'unknown', 'delivered', 'failed', 'expired')),
    attempt BIGINT NOT NULL DEFAULT 0,
    -- After an unknown outcome one resend, labelled as a possible repeat, and no more.
    repeats BIGINT NOT NULL DEFAULT 0 CHECK (repeats IN (0, 1)),
    fence BIGINT NOT NULL DEFAULT 0,
    node_id TEXT,
    receipt TEXT,
    error TEXT,
    settled_at BIGINT,
    UNIQUE (turn_id, target, part),
    CHECK ((state = 'sending') = (node_id IS NOT NULL))
) /*strict*/;
CREATE INDEX deliveries_due ON deliveries (due_at)
    WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0);
CREATE INDEX deliveries_held ON deliveries (node_id) WHERE node_id IS NOT NULL;

CREATE TABLE segments (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    first_generation BIGINT NOT NULL CHECK (first_generation > 0),
    last_generation BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'sealed', 'committing', 'committed')),
    attempt BIGINT NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0,
    node_id TEXT,
    error TEXT,
    UNIQUE (session_id, first_generation),
    UNIQUE (session_id, last_generation),
    CHECK (first_generation <= last_generation),
    CHECK ((state = 'committing') = (node_id IS NOT NULL))
) /*strict*/;
CREATE UNIQUE INDEX segments_one_open_per_session ON segments (session_id) WHERE state = 'open';
CREATE UNIQUE INDEX segments_one_committing_per_session ON segments (session_id) WHERE state = 'committing';
CREATE INDEX segments_due ON segments (owner, due_at) WHERE state = 'sealed';
CREATE INDEX segments_held ON segments (node_id) WHERE node_id IS NOT NULL;

CREATE TABLE jobs (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    schedule TEXT NOT NULL,
    prompt TEXT NOT NULL,
    deliver TEXT,
    paused BIGINT NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    created_at BIGINT NOT NULL,
    last_instant BIGINT NOT NULL
) /*strict*/;

-- One row per due instant: a second firing is refused, whatever the clock does.  No turn means that it was missed.
CREATE TABLE slots (
    job TEXT NOT NULL REFERENCES jobs (name) ON DELETE CASCADE,
    instant BIGINT NOT NULL,
    turn_id TEXT,
    PRIMARY KEY (job, instant)
) /*strict*/;
