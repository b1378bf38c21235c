-- The folder in which a node keeps what it could not write; its next process hands that in.
ALTER TABLE nodes ADD COLUMN home TEXT NOT NULL DEFAULT '';

-- Interrupted attempts of which more may be in the home of their node; gone once that is known, or given up.
CREATE TABLE recoveries (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL CHECK (attempt > 0),
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    home TEXT NOT NULL CHECK (home <> ''),
    tries BIGINT NOT NULL DEFAULT 0 CHECK (tries >= 0),
    since BIGINT NOT NULL,
    PRIMARY KEY (turn_id, attempt)
) /*strict*/;
CREATE INDEX recoveries_by_session ON recoveries (session_id);
CREATE INDEX recoveries_by_home ON recoveries (home);
