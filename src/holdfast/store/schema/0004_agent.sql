-- What an agent needs: questions that outlive the process that asked them, what may be done unasked, background
-- processes, pictures, what was spent, and what is remembered.

ALTER TABLE turns ADD COLUMN parent_turn_id TEXT;
CREATE INDEX turns_by_parent ON turns (parent_turn_id) WHERE parent_turn_id IS NOT NULL;

-- One row per question ever asked; a turn that waits has exactly one that is open.
CREATE TABLE questions (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    about TEXT NOT NULL CHECK (about IN ('answer', 'approval', 'budget')),
    text TEXT NOT NULL,
    choices TEXT NOT NULL,
    detail TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT,
    answer TEXT,
    answered_at BIGINT,
    PRIMARY KEY (turn_id, id),
    CHECK ((answer IS NULL) = (answered_at IS NULL))
) /*strict*/;
CREATE UNIQUE INDEX questions_one_open_per_turn ON questions (turn_id) WHERE answer IS NULL;
CREATE INDEX questions_open ON questions (owner, asked_at) WHERE answer IS NULL;
CREATE INDEX questions_of_session ON questions (session_id, asked_at) WHERE answer IS NULL;
CREATE INDEX questions_expiring ON questions (expires_at) WHERE answer IS NULL AND expires_at IS NOT NULL;
CREATE INDEX questions_of_budgets ON questions (owner, asked_at) WHERE about = 'budget';
-- Turns that wait already were asked before there was a table for it.
INSERT INTO questions (turn_id, id, session_id, owner, about, text, choices, detail, fingerprint, asked_at)
SELECT t.id, COALESCE(e.data ->> 'question_id', ''), t.session_id, s.owner, 'answer', COALESCE(e.data ->> 'text', ''),
       '[]', '{}', '', COALESCE(e.at, t.accepted_at)
  FROM turns t JOIN sessions s ON s.id = t.session_id
  LEFT JOIN entries e ON e.turn_id = t.id AND e.seq = (SELECT MAX(a.seq) FROM entries a
                                                   WHERE a.turn_id = t.id AND a.kind = 'approval.asked')
 WHERE t.state = 'waiting';

-- What a person has allowed beyond the one time: in one session, with which it goes, or in all of theirs.
CREATE TABLE grants (
    owner TEXT NOT NULL,
    fingerprint TEXT NOT NULL CHECK (fingerprint <> ''),
    session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    granted_at BIGINT NOT NULL
) /*strict*/;
CREATE UNIQUE INDEX grants_once ON grants (owner, fingerprint, COALESCE(session_id, ''));
CREATE INDEX grants_of_session ON grants (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    home TEXT NOT NULL,
    command TEXT NOT NULL,
    workdir TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    pid BIGINT NOT NULL DEFAULT 0,
    born BIGINT NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'exited', 'lost')),
    exit_code BIGINT,
    ended_at BIGINT,
    notifies BIGINT NOT NULL CHECK (notifies IN (0, 1)),
    patterns TEXT NOT NULL,
    watched BIGINT NOT NULL DEFAULT 0 CHECK (watched >= 0),
    reply_to TEXT,
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK (state <> 'exited' OR exit_code IS NOT NULL)
) /*strict*/;
CREATE INDEX processes_running ON processes (home) WHERE state = 'running';
CREATE INDEX processes_running_by_session ON processes (session_id) WHERE state = 'running';
CREATE INDEX processes_by_session ON processes (session_id, id);
CREATE INDEX processes_by_owner ON processes (owner, id);

CREATE TABLE images (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    number BIGINT NOT NULL CHECK (number > 0),
    media_type TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (turn_id, number)
) /*strict*/;

-- Outlives its turn, so that a deleted conversation still counts against the budget of its day.
CREATE TABLE spending (
    turn_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    nth BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    at BIGINT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL CHECK (input_tokens >= 0),
    output_tokens BIGINT NOT NULL CHECK (output_tokens >= 0),
    cached_tokens BIGINT NOT NULL CHECK (cached_tokens >= 0),
    cost_micros BIGINT NOT NULL CHECK (cost_micros >= 0),
    PRIMARY KEY (turn_id, attempt, nth)
) /*strict*/;
CREATE INDEX spending_by_session ON spending (session_id);
CREATE INDEX spending_by_day ON spending (owner, at);

CREATE TABLE memories (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    turn_id TEXT,
    UNIQUE (owner, text)
) /*strict*/;

-- Where the context of a long conversation begins: found without reading the conversation.
CREATE INDEX entries_compacted ON entries (session_id, seq) WHERE kind = 'context.compacted';
