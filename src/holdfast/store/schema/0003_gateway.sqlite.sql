-- The banner of a stop is the part -n of attempt n: at most one per attempt and target, as with every other part.
-- SQLite cannot change a CHECK, so the table is made anew; nothing refers to it.
CREATE TABLE deliveries_anew (
    id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    target TEXT NOT NULL,
    part BIGINT NOT NULL CHECK (part <> 0),
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN
        ('pending', 'sending', 'retry', 'unknown', 'delivered', 'failed', 'expired')),
    attempt BIGINT NOT NULL DEFAULT 0,
    repeats BIGINT NOT NULL DEFAULT 0 CHECK (repeats IN (0, 1)),
    fence BIGINT NOT NULL DEFAULT 0,
    node_id TEXT,
    receipt TEXT,
    error TEXT,
    settled_at BIGINT,
    UNIQUE (turn_id, target, part),
    CHECK ((state = 'sending') = (node_id IS NOT NULL))
) STRICT;
INSERT INTO deliveries_anew
    (id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, node_id, receipt,
     error, settled_at)
SELECT id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, node_id, receipt,
       error, settled_at FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_anew RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (due_at)
    WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0);
CREATE INDEX deliveries_held ON deliveries (node_id) WHERE node_id IS NOT NULL;
