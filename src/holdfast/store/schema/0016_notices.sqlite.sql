-- A delivery without a turn is a notice: a reply to a command, a pairing code, a message to the operator.  SQLite cannot
-- drop a NOT NULL, so the table is made anew; nothing refers to it.
CREATE TABLE deliveries_anew (
    number /*rowid*/,
    id TEXT NOT NULL UNIQUE,
    turn_id TEXT REFERENCES turns (id) ON DELETE CASCADE,
    session_id TEXT,
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
    owner TEXT NOT NULL DEFAULT '',
    refused_at BIGINT,
    extra TEXT NOT NULL DEFAULT '{}',
    UNIQUE (turn_id, target, part),
    CHECK ((state = 'sending') = (node_id IS NOT NULL)),
    CHECK ((turn_id IS NULL) = (session_id IS NULL))
) /*strict*/;
INSERT INTO deliveries_anew
    (id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, node_id, receipt,
     error, settled_at, owner, refused_at)
SELECT id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, repeats, fence, node_id, receipt,
       error, settled_at, owner, refused_at FROM deliveries ORDER BY created_at, rowid;
DROP TABLE deliveries;
ALTER TABLE deliveries_anew RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (due_at)
    WHERE state IN ('pending', 'retry') OR (state = 'unknown' AND repeats = 0);
CREATE INDEX deliveries_held ON deliveries (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX deliveries_by_owner ON deliveries (owner, created_at, id);
CREATE INDEX deliveries_by_state ON deliveries (owner, state, created_at, id);
CREATE INDEX deliveries_in_line ON deliveries (target, number)
    WHERE state IN ('pending', 'sending', 'retry') OR (state = 'unknown' AND repeats = 0);
CREATE INDEX deliveries_notices ON deliveries (settled_at) WHERE turn_id IS NULL;
