"""`crosshatch reproduce`: the papers' tables and figures, made anew."""
