"""Makes Capsules: walks a folder, refuses what must not go, archives it reproducibly, and builds the runner."""
