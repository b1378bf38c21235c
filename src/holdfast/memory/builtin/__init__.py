"""The builtin memory: facts are extracted from a conversation when it is over, and kept in the store."""
