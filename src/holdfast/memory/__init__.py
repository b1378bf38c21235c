"""Memory providers, which keep what is worth remembering of conversations."""
