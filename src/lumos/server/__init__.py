"""The server: the verbs of the SDK over HTTP, and the client that uses them from elsewhere."""
