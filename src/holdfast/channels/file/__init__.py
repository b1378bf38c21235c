"""Files of the home: `file:NAME` appends each delivery to NAME.jsonl in the outbox folder, for scripts and people."""
