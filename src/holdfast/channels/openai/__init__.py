"""The API of OpenAI: what its clients send, and turns as they want to read them.  Nothing here does any I/O."""
