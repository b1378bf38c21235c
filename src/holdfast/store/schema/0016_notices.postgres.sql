-- A delivery without a turn is a notice: a reply to a command, a pairing code, a message to the operator.
ALTER TABLE deliveries ALTER COLUMN turn_id DROP NOT NULL;
ALTER TABLE deliveries ALTER COLUMN session_id DROP NOT NULL;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_notice_check CHECK ((turn_id IS NULL) = (session_id IS NULL));
-- The order in which deliveries were written, which is that of one chat.
ALTER TABLE deliveries ADD COLUMN number BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE deliveries ADD COLUMN extra TEXT NOT NULL DEFAULT '{}';
CREATE INDEX deliveries_in_line ON deliveries (target, number)
    WHERE state IN ('pending', 'sending', 'retry') OR (state = 'unknown' AND repeats = 0);
CREATE INDEX deliveries_notices ON deliveries (settled_at) WHERE turn_id IS NULL;
