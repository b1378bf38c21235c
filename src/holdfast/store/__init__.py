"""The durable store: one set of rules and statements, on SQLite or PostgreSQL."""
