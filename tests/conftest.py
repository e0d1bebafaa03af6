"""For all tests."""

from hypothesis import settings

# speed lives in benchmarks/: on a busy machine a deadline fails by chance
settings.register_profile("shortlist", deadline=None)
settings.load_profile("shortlist")
