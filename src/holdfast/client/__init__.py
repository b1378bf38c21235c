"""The client: the services of a gateway, wherever it runs."""
