"""The web server: the app with its pages and API, signing in, limits, and running it.

The routes in `api` are thin: what they do is in `queue` and `project`. `auth` says who is asking, `limits` how much and
how fast, and `guard` stands before every route.
"""
