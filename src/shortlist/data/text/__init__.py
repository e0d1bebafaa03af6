"""Texts made into features: TF-IDF by default, sentence embeddings as an option."""
