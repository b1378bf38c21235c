"""Channels: how messages come in and answers go out, one module or folder each."""
