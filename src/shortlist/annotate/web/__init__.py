"""The web server: pages, API, sign-in."""
