-- Turns are claimed by owner, so that many of one keep nobody else's waiting; finding an owner's next one costs the same
-- however many others wait.
ALTER TABLE turns ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';
UPDATE turns SET owner = (SELECT s.owner FROM sessions s WHERE s.id = turns.session_id)
 WHERE session_id IN (SELECT id FROM sessions WHERE owner <> 'local');
DROP INDEX turns_claimable;
DROP INDEX turns_waited_for;
CREATE INDEX turns_claimable ON turns (owner, accepted_at, id) WHERE state = 'queued' AND node_id IS NULL;
CREATE INDEX turns_waited_for ON turns (owner, accepted_at, id)
 WHERE state = 'queued' AND node_id IS NULL AND mode <> 'detached';
-- How much was sent to a session.  Only tenants have a quota, and only their sessions are counted by this index.
ALTER TABLE sessions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sessions_of_tenants ON sessions (owner, bytes) WHERE owner <> 'local';
-- One row for each tenant: whoever uses up a quota holds it, so that two at once cannot both take the last of it.
CREATE TABLE tenants (owner TEXT PRIMARY KEY) /*strict*/;
