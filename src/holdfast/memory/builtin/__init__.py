"""The builtin memory: what a talk leaves behind is extracted when it is over, and kept in the store."""
