"""The HTTP face of a gateway: one application on its Unix socket and on TCP."""
