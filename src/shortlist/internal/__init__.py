"""Small helpers that every room may use; they are not for users and may change without notice.

Import each module by its own name (`from shortlist.internal.files import atomic_write`), so that light ones stay light.
"""
