-- People whom the operator has let in, or whom `allow` of an account names.  The second have no time of approval: what they
-- may do is in the configuration alone.
CREATE TABLE people (
    person TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    user_id TEXT NOT NULL,
    user_name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('operator', 'trusted', 'guest')),
    owner TEXT NOT NULL CHECK ((role = 'operator') = (owner = 'local')),
    approved_at BIGINT,
    last_seen_at BIGINT,
    UNIQUE (account, user_id)
) /*strict*/;

-- People who ask to be let in.  Each has one request, which the next one replaces.
CREATE TABLE pairings (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    user_id TEXT NOT NULL,
    user_name TEXT NOT NULL,
    place TEXT NOT NULL,
    code_digest TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL CHECK (expires_at > asked_at),
    message TEXT NOT NULL,
    decided TEXT CHECK (decided IS NULL OR decided IN ('me', 'trusted', 'guest', 'deny')),
    decided_by TEXT,
    decided_at BIGINT,
    UNIQUE (account, user_id),
    CHECK ((decided IS NULL) = (decided_at IS NULL) AND (decided IS NULL) = (decided_by IS NULL))
) /*strict*/;
CREATE INDEX pairings_by_expiry ON pairings (expires_at);
