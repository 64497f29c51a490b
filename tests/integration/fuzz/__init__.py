"""A package, so that its gateways end with it."""
