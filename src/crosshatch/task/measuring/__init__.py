"""How scores order samples, what deciding by them comes to, and how far metrics vary over the samples drawn."""
