-- Accounts of chat platforms: which node receives, what it has received and not handled yet, and which messages became turns.
CREATE TABLE channel_accounts (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'stopped' CHECK (state IN ('connecting', 'connected', 'stopped', 'taken', 'refused')),
    problem TEXT NOT NULL DEFAULT '',
    -- The lease: the node that receives, and a number that grows whenever another one begins to.
    node_id TEXT,
    fence BIGINT NOT NULL DEFAULT 0,
    -- The number of the last event.
    seq BIGINT NOT NULL DEFAULT 0,
    last_receive_at BIGINT,
    bot_id TEXT NOT NULL DEFAULT '',
    bot_name TEXT NOT NULL DEFAULT '',
    bot_url TEXT NOT NULL DEFAULT '',
    menu_digest TEXT NOT NULL DEFAULT ''
) /*strict*/;

-- Events that are durable and not handled yet.  A pairing or a question about a backlog may hold them; what a backlog has
-- let go on has '' there.
CREATE TABLE chat_inbox (
    account TEXT NOT NULL,
    number BIGINT NOT NULL,
    key TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    event TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    holder TEXT,
    PRIMARY KEY (account, number),
    UNIQUE (account, key)
) /*strict*/;
CREATE INDEX chat_inbox_free ON chat_inbox (account, number) WHERE COALESCE(holder, '') = '';
CREATE INDEX chat_inbox_held ON chat_inbox (holder) WHERE holder IS NOT NULL;

-- Which part of which turn's text a message became.  A message that is here is not taken again.
CREATE TABLE chat_messages (
    account TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    length BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account, chat_id, message_id)
) /*strict*/;
CREATE INDEX chat_messages_of_turn ON chat_messages (turn_id);
CREATE INDEX chat_messages_of_user ON chat_messages (account, user_id, at);
CREATE INDEX chat_messages_at ON chat_messages (at);

-- Chats that got another id.  Their conversations go on under the first one, and what is sent goes to the last.
CREATE TABLE chat_moves (
    account TEXT NOT NULL,
    from_chat_id TEXT NOT NULL,
    to_chat_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account, from_chat_id),
    UNIQUE (account, to_chat_id)
) /*strict*/;
