"""Living as a long-running process: what the service manager is told, and what happens when the loop stands still."""
