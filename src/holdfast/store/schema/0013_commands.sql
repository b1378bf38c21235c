-- The model that a person chose for a conversation; NULL is the configured one.
ALTER TABLE sessions ADD COLUMN model TEXT;

-- Chats that go on with the conversation of another channel.  One that is over is not gone on with.
CREATE TABLE continuations (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
) /*strict*/;
CREATE INDEX continuations_session ON continuations (session_id);
