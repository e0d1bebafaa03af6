"""A project: its folder, items, classes and people, and what is reported about it.

`project` opens a folder; `sources` and `media` read what comes in, `classes`, `importing` and `gold_items` store it;
`people` has annotators, links and tokens; `instructions`, `stats` and `backup` do what they say.
"""
