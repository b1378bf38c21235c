"""Memory providers: who keeps what conversations leave behind."""
