"""Channels: where messages come from and answers go, one folder each."""
