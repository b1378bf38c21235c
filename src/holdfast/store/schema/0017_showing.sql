-- What a chat shows of a turn while it is at work: one message, which its answer replaces or removes.  A message that is
-- being sent has no id yet; if its sender dies, it is never sent again.
CREATE TABLE status_lines (
    turn_id TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    target TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('status', 'stream')),
    state TEXT NOT NULL DEFAULT 'sending' CHECK (state IN ('sending', 'shown', 'closed')),
    message_id TEXT,
    CHECK (state <> 'shown' OR message_id IS NOT NULL)
) /*strict*/;
CREATE INDEX status_lines_open ON status_lines (target) WHERE state <> 'closed';

-- Messages that ask a question.  Each is edited once to say how the question was settled.
CREATE TABLE cards (
    delivery_id TEXT PRIMARY KEY REFERENCES deliveries (id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    question_id TEXT NOT NULL,
    target TEXT NOT NULL,
    closed_at BIGINT
) /*strict*/;
CREATE INDEX cards_of_turn ON cards (turn_id);
CREATE INDEX cards_open ON cards (target) WHERE closed_at IS NULL;

-- The content of files that are sent, as base64, under its digest.
CREATE TABLE kept_files (
    id TEXT PRIMARY KEY,
    data TEXT NOT NULL,
    kept_at BIGINT NOT NULL
) /*strict*/;
CREATE INDEX kept_files_at ON kept_files (kept_at);
