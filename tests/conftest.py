"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("everywhere", deadline=None)  # how long an example takes says more about the machine
settings.load_profile("everywhere")
