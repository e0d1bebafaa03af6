"""The demo: the idea in two minutes on scikit-learn's digits, a table and a page with two pictures."""
