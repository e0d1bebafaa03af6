"""The database: tables, migrations, transactions, and the statements that several rooms share.

`schema` names the tables, `store` opens SQLite or PostgreSQL, `group_commit` lets SQLite's writers share one fsync,
`statements` holds small reads and writes, `migrations` brings older databases up to date.
"""
