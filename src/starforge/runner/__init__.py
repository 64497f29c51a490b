"""The runner: starts a user's command in a training image, once per attempt, and tells the platform how it went.

It becomes `.starforge/runner.pex` of every Capsule. It uses the standard library alone and runs on Python 3.9 and up,
as it meets the Python of whatever image the user chose.
"""
