-- What the world outside needs: keys and logins, webhook routes, secrets of our own, messages that need no agent, and lists
-- that are read a page at a time, however long they have become.

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    rate_limit BIGINT NOT NULL DEFAULT 0 CHECK (rate_limit >= 0),
    revoked_at BIGINT
) /*strict*/;

CREATE TABLE logins (
    digest TEXT PRIMARY KEY,
    purpose TEXT NOT NULL CHECK (purpose IN ('code', 'cookie')),
    owner TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) /*strict*/;
CREATE INDEX logins_by_expiry ON logins (expires_at);

CREATE TABLE webhooks (
    name TEXT PRIMARY KEY,
    route TEXT NOT NULL,
    created_at BIGINT NOT NULL
) /*strict*/;

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL CHECK (value <> '')
) /*strict*/;

ALTER TABLE turns ADD COLUMN verbatim BIGINT NOT NULL DEFAULT 0 CHECK (verbatim IN (0, 1));
ALTER TABLE sessions ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
ALTER TABLE sessions ADD COLUMN archived BIGINT NOT NULL DEFAULT 0 CHECK (archived IN (0, 1));

-- Lists are read a page at a time, the newest first; what narrows one is in front of the time, so that no page reads on
-- through all that was left out.
CREATE INDEX sessions_by_channel ON sessions (owner, channel, updated_at, id);
CREATE INDEX sessions_in_use ON sessions (owner, updated_at, id) WHERE state IN ('open', 'suspended');
CREATE INDEX sessions_archived ON sessions (owner, updated_at, id) WHERE archived = 1;
-- What somebody waits for is claimed before the rest, however much of that there is.
CREATE INDEX turns_waited_for ON turns (accepted_at, id) WHERE state = 'queued' AND node_id IS NULL AND mode <> 'detached';
CREATE INDEX turns_unanswered ON turns (state) WHERE state IN ('failed', 'cancelled');
CREATE INDEX jobs_by_owner ON jobs (owner, name);
CREATE INDEX memories_by_owner ON memories (owner, created_at, id);
ALTER TABLE deliveries ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE deliveries SET owner = (SELECT s.owner FROM sessions s WHERE s.id = deliveries.session_id);
-- When the far side last wanted to be left alone, by the clock of whoever heard it.
ALTER TABLE deliveries ADD COLUMN refused_at BIGINT;
CREATE INDEX deliveries_by_owner ON deliveries (owner, created_at, id);
CREATE INDEX deliveries_by_state ON deliveries (owner, state, created_at, id);
