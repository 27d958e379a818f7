"""The server: the methods of the SDK over HTTP, and the client that calls them."""
