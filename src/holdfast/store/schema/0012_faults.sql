-- How many turns ran on a node when it was found dead: only one that ran alone is known to be the cause.
ALTER TABLE nodes ADD COLUMN ran BIGINT CHECK (ran >= 0);
-- Sessions whose next turn runs alone.  They are few, and looked for with every claim.
CREATE INDEX sessions_suspect ON sessions (id) WHERE strikes >= 2;
-- When a turn is tried again that waits for its model; until then it is not claimable, and costs no claim anything.
ALTER TABLE turns ADD COLUMN retry_at BIGINT;
CREATE INDEX turns_deferred ON turns (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX turns_deferred_of_owner ON turns (owner) WHERE retry_at IS NOT NULL;
DROP INDEX turns_claimable;
DROP INDEX turns_waited_for;
CREATE INDEX turns_claimable ON turns (owner, accepted_at, id)
 WHERE state = 'queued' AND node_id IS NULL AND retry_at IS NULL;
CREATE INDEX turns_waited_for ON turns (owner, accepted_at, id)
 WHERE state = 'queued' AND node_id IS NULL AND retry_at IS NULL AND mode <> 'detached';
