"""Agents: the model-and-tool loop behind a port."""
