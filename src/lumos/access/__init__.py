"""Access to a server: roles, API tokens and identities of an OpenID Connect provider."""
