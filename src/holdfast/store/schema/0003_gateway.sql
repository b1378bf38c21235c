-- What a gateway needs beyond the spine: messages that join a running turn, and a cheap look at what waits to be resumed.

ALTER TABLE turns ADD COLUMN steers BIGINT NOT NULL DEFAULT 0 CHECK (steers IN (0, 1));
ALTER TABLE turns ADD COLUMN joined_to TEXT;
CREATE INDEX turns_interrupted ON turns (session_id) WHERE state = 'interrupted';
