"""The forms that a user's own data may have, one file per form; `load` tells which one a path is."""
