"""The folder of a trained model: written, read and used."""
