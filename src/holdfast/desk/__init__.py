"""The desk: everything that a person, a script or a page may ask of a gateway, in this process or in another."""
