"""Models behind one port."""
